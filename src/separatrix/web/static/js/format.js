// Numbers as people read them, as the command line prints them.

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

// A power of ten: 10⁻⁶.
export function powerOfTen(exponent) {
  return `10${String(exponent).replace(/./g, (character) => RAISED[character])}`;
}

// 0.999755, 1.6556×10⁻⁶.
export function forPeople(value, digits = 6) {
  if (value === null || value === undefined || Number.isNaN(value)) return "not known";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e6) return String(Number(value.toPrecision(digits))).replace("-", "−");
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const power = powerOfTen(Number(exponent));
  const shortMantissa = String(Number(mantissa)).replace("-", "−");
  return shortMantissa === "1" ? power : `${shortMantissa}×${power}`;
}
