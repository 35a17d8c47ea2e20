// Places that the atlas and cards lead to, and what their own addresses keep.

export function cardPlace(mechanism, options = []) {
  return { command: "assess", names: [mechanism], words: [], options };
}

// The question behind a standing: its construction at the reference point, with what sets a second column apart.
export function questionPlace(mechanism, column, columns) {
  const first = columns.find((each) => each.construction === column.construction);
  const words = Object.entries(column.parameters).filter(([name, value]) => first !== column && first.parameters[name] !== value);
  return { command: "verdict", names: [column.construction, mechanism], words, options: [] };
}

export function withOption(place, name, value) {
  const options = place.options.filter(([each]) => each !== name);
  return { ...place, options: value ? [...options, [name, value]] : options };
}

export function withPageState(place, name, value) {
  const page = (place.page ?? []).filter(([each]) => each !== name);
  return { ...place, page: value ? [...page, [name, value]] : page };
}

export const optionOf = (place, name) => place.options.find(([each]) => each === name)?.[1] ?? "";
export const pageStateOf = (place, name) => (place.page ?? []).find(([each]) => each === name)?.[1] ?? "";
