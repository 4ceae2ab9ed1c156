# What the benchmark's awk programs share: a field of a JSON line, times and names as they are shown.

function field(name,    at, rest) {
    at = index($0, "\"" name "\": ")
    if (at == 0)
        return ""
    rest = substr($0, at + length(name) + 4)
    if (substr(rest, 1, 1) == "\"") {
        rest = substr(rest, 2)
        return substr(rest, 1, index(rest, "\"") - 1)
    }
    return substr(rest, 1, match(rest, /[,}]/) - 1)
}

function digits(value, count,    places) {
    places = value > 0 ? count - 1 - int(log(value) / log(10) + (value >= 1 ? 0 : -1)) : 0
    return sprintf("%." (places > 0 ? places : 0) "f", value)
}

function microseconds(value) {
    value += 0
    return value >= 1000 ? digits(value / 1000, 3) " ms" : digits(value, 3) " \302\265s"
}

function plural(count, word) {
    return count " " word (count == 1 ? "" : "s")
}
