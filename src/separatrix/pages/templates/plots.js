(function () {
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not(.long)").forEach(function (each) { each.open = true; });
  });
  var touch = window.matchMedia("(pointer: coarse)").matches;
  var config = {responsive: true, displaylogo: false, displayModeBar: false};
  var read = function (id) { return JSON.parse(document.getElementById(id).textContent); };
  var at = function (rows, i, j) {
    var row = rows[rows.length > 1 ? i : 0];
    return row[row.length > 1 ? j : 0];
  };
  var words = function (cells, panel, i, j) {
    var chosen = [[cells.names[0], cells.x[j]], [cells.names[1], cells.y[i]]];
    if (cells.n) {
      chosen = chosen.filter(function (each) { return each[0] !== "n"; });
      chosen.push(["n", at(cells.n, i, j)]);
    }
    var is_own = function (each) { return cells.own.indexOf(each[0]) >= 0; };
    var spell = function (each) { return each[0] + "=" + each[1]; };
    var own = chosen.filter(is_own).map(spell).join(",");
    var rest = chosen.filter(function (each) { return !is_own(each); }).map(spell);
    return panel.mechanisms.map(function (name) {
      var mechanism = own ? name + (name.indexOf(":") < 0 ? ":" : ",") + own : name;
      return ["separatrix verdict", cells.construction, mechanism].concat(rest, cells.rest).join(" ");
    });
  };
  var for_people = function (x) {
    var parts = String(x).split("e");
    if (parts.length < 2) { return parts[0]; }
    var raised = String(Number(parts[1])).replace(/./g, function (c) { return c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]; });
    return (parts[0] === "1" ? "10" : parts[0] + "×10") + raised;
  };
  document.querySelectorAll(".plot").forEach(function (place) {
    var plot = read(place.dataset.source);
    var cells = place.dataset.cells ? read("cells") : null;
    if (place.clientWidth < 420 && plot.layout.annotations) {
      plot.layout.annotations = plot.layout.annotations.filter(function (each) { return each.name !== "wide"; });
    }
    if (touch) { plot.layout.dragmode = false; }
    if (cells && cells.n) {
      plot.data[0].customdata = cells.y.map(function (_, i) {
        return cells.x.map(function (_, j) { return at(cells.n, i, j); });
      });
    }
    Plotly.newPlot(place, plot.data, plot.layout, config);
    if (!cells) { return; }
    var panel = cells.panels[+place.dataset.cells], held = false;
    var below = document.getElementById("cell-" + place.dataset.cells);
    var show = function (i, j, value) {
      below.querySelector("code").textContent = words(cells, panel, i, j).join("\n");
      below.querySelector(".prints").textContent = value === null ? "not computed" : "→ " + panel.what + value;
    };
    var number = function (z) {
      if (z === null || z === undefined || isNaN(z)) { return null; }
      return for_people(Number((panel.log ? Math.pow(10, z) : z).toPrecision(6)));
    };
    var middle = [cells.y.length >> 1, cells.x.length >> 1];
    show(middle[0], middle[1], panel.middle);
    place.on("plotly_hover", function (event) {
      var point = event.points[0];
      if (!held && point.pointIndex.length === 2) {
        show(point.pointIndex[0], point.pointIndex[1], number(point.z));
      }
    });
    place.on("plotly_click", function () {
      held = !held;
      below.classList.toggle("held", held);
    });
  });
})();
