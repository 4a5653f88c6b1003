// Figures for people, written as the command line writes them.

export const count = (number) => Math.round(number).toLocaleString("en-US");

function threeDigits(number) {
  if (number < 10) return number.toFixed(2);
  return number < 100 ? number.toFixed(1) : Math.round(number).toLocaleString("en-US");
}

export function short(number) {
  if (number < 100000) return count(number);
  let unit = "";
  for (unit of ["k", "M", "G", "T"]) {
    number /= 1000;
    if (number < 999.5) break;
  }
  return `${threeDigits(number)} ${unit}`;
}

export function size(bytes) {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  let unit = "";
  for (unit of ["kB", "MB", "GB", "TB", "PB"]) {
    bytes /= 1000;
    if (bytes < 999.5) break;
  }
  return `${threeDigits(bytes)} ${unit}`;
}

export const rate = (perSecond) => `${threeDigits(perSecond)}/s`;

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (days) return `${days} d ${hours % 24} h`;
  return hours ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
}

export const moment = (at) => (at ? new Date(at).toISOString().slice(0, 19).replace("T", " ") : "never");

export function clock(at, long) {
  const told = new Date(at).toISOString();
  return long ? `${told.slice(5, 10)} ${told.slice(11, 16)}` : told.slice(11, 19);
}

export const sum = (counts) => Object.values(counts).reduce((one, two) => one + two, 0);
