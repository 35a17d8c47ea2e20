// Places that the atlas and cards lead to, and the options and the state in their addresses.

export function cardPlace(mechanism, options = []) {
  return { command: "assess", names: [mechanism], words: [], options };
}

// The verdict behind a standing: the construction at its reference point; a second column of a construction has words.
export function questionPlace(mechanism, column, columns) {
  const first = columns.find(({ construction }) => construction === column.construction);
  const words = Object.entries(column.parameters).filter(([name, value]) => first !== column && first.parameters[name] !== value);
  return { command: "verdict", names: [column.construction, mechanism], words, options: [] };
}

export function withOption(place, name, value) {
  const options = place.options.filter(([option]) => option !== name);
  return { ...place, options: value ? [...options, [name, value]] : options };
}

export function withPageState(place, name, value) {
  const page = (place.page ?? []).filter(([key]) => key !== name);
  return { ...place, page: value ? [...page, [name, value]] : page };
}

export const optionOf = (place, name) => place.options.find(([option]) => option === name)?.[1] ?? "";
export const pageStateOf = (place, name) => (place.page ?? []).find(([key]) => key === name)?.[1] ?? "";
