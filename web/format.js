/* Numbers, times and sizes as texts of the page's language. */
let locale = 'en';
const formats = new Map();

export function setLocale(language) {
    locale = language;
    formats.clear();
}

function format(key, options) {
    if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(locale, options));
    return formats.get(key);
}

export const none = '–';

/* 1.2e+7 as the language writes it. */
function scientific(text) {
    const [point] = format('d', { minimumFractionDigits: 1 }).format(0.5).match(/[^\d]/);
    return text.replace('e+', 'e').replace('.', point);
}

/* About `digits` significant ones; very small and very large numbers as 1.2e-7. */
export function number(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return none;
    if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
    const size = Math.abs(value);
    if (value !== 0 && (size < 1e-4 || size >= 1e9)) return scientific(value.toExponential(Math.max(0, digits - 2)));
    if (Number.isInteger(value)) return integer(value);
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return format(`n${decimals}`, { minimumFractionDigits: Math.min(decimals, 2), maximumFractionDigits: decimals })
        .format(value);
}

/* Of an axis that is `span` long: as few digits as tell it from its neighbours. */
export function tick(value, span = Infinity) {
    if (!Number.isFinite(value)) return '';
    const size = Math.abs(value);
    if (value !== 0 && (size < 1e-4 || size >= 1e7)) return scientific(Number(value.toPrecision(4))
        .toExponential());
    const fine = size > 0 && span > 0 ? Math.ceil(Math.log10(size / span)) + 3 : 0;
    const digits = Math.max(size >= 1000 ? 7 : 5, Math.min(10, fine));
    return format(`t${digits}`, { maximumSignificantDigits: digits }).format(Number(value.toPrecision(10)));
}

export function tickPercent(value) {
    return format('tp', { style: 'percent', maximumFractionDigits: 3 }).format(Number(value.toPrecision(10)));
}

/* The same number of decimals each time: figures that change do not jump. */
export function fixed(value, decimals) {
    if (value === null || value === undefined || !Number.isFinite(value)) return none;
    return format(`f${decimals}`, { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(value);
}

/* For figures that change all the time. */
export function steady(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return none;
    const size = Math.abs(value);
    if (size === 0) return integer(0);
    if (size < 1e-4 || size >= 1e6) return scientific(value.toExponential(2));
    const small = size >= 0.01 ? 4 : size >= 1e-3 ? 5 : 6;
    return fixed(value, size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : small);
}

export function integer(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return none;
    return format('i', { maximumFractionDigits: 0 }).format(value);
}

export function percent(value, decimals = 1) {
    if (value === null || value === undefined || !Number.isFinite(value)) return none;
    return format(`p${decimals}`, { style: 'percent', minimumFractionDigits: decimals,
        maximumFractionDigits: decimals }).format(value);
}

/* 0.42 s, 12.3 s, 3:07, 1:02:03, 2 d 3:00:00 */
export function duration(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return none;
    if (seconds < 60) return `${fixed(seconds, seconds < 10 ? 2 : 1)} s`;
    const whole = Math.floor(seconds), two = (n) => String(n).padStart(2, '0');
    const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24;
    const clock = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
    if (days > 0) return `${days} d ${hours}:${clock}`;
    return hours > 0 ? `${hours}:${clock}` : clock.replace(/^0/, '');
}

/* On an axis: 20 s, 3:20. */
export function timeText(seconds) {
    return seconds < 60 ? `${tick(seconds)} s` : duration(seconds);
}

/* Without tenths: for what is left. */
export function roughly(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return none;
    return seconds < 60 ? `${Math.max(0, Math.round(seconds))} s` : duration(seconds);
}

export function shortTime(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return none;
    if (seconds >= 1) return duration(seconds);
    if (seconds >= 1e-3) return `${number(seconds * 1e3, 3)} ms`;
    return seconds === 0 ? none : `${number(seconds * 1e6, 3)} µs`;
}

export function bytes(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return none;
    const units = ['B', 'kB', 'MB', 'GB', 'TB'];
    let unit = 0;
    for (; Math.abs(value) >= 1000 && unit < units.length - 1; unit++) value /= 1000;
    return `${unit === 0 ? integer(value) : fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0)} ${units[unit]}`;
}

/* 9,999, 16.9 k, 1.59 M: for rates and counts that need not be exact. */
export function count(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return none;
    const units = ['', ' k', ' M', ' G', ' T'];
    let unit = 0;
    const fits = () => Math.abs(value) < (unit === 0 ? 9999.5 : 999.5);
    for (; !fits() && unit < units.length - 1; unit++) value /= 1000;
    if (unit > 0 && Math.abs(value) < 100) return fixed(value, value < 10 ? 2 : 1) + units[unit];
    return (Number.isInteger(value) || Math.abs(value) >= 100 ? integer(value) : number(value, 3)) + units[unit];
}

/* Seconds since 1970, or a text as of JSON lines. */
function toDate(time) {
    return new Date(typeof time === 'number' ? time * 1000 : time);
}

export function clock(time) {
    const date = toDate(time);
    if (Number.isNaN(date.getTime())) return none;
    return date.toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
}

export function moment(time) {
    const date = toDate(time);
    if (Number.isNaN(date.getTime())) return none;
    const today = new Date().toDateString() === date.toDateString();
    return today ? clock(time)
        : `${date.toLocaleDateString(locale, { day: '2-digit', month: 'short' })} ${clock(time)}`;
}

/* As a person types it, and as the server reads it. */
export function plain(value) {
    if (value === null || value === undefined) return '';
    if (typeof value !== 'number') return String(value);
    return String(Number(value.toPrecision(12)));
}

/* "1,5" and "1.5"; NaN for what is none. */
export function parse(text) {
    const trimmed = text.trim().replace(/^(-?\d*),(\d+)$/, '$1.$2').replace('−', '-');
    return trimmed === '' ? NaN : Number(trimmed);
}
