# What pictures.c and pictures_torch.py print for each pass (FORMAT PROGRAM THREADS PICTURES_A_SECOND MICROSECONDS) as a
# table of medians; the ratio is ours by torchvision's of as many threads, of one the faster of a worker and of none.

{
    count = ++passes[$1, $2, $3]
    rate[$1, $2, $3, count] = $4
    used[$1, $2, $3, count] = $5
    if ($2 == "sigma" && count == 1) {
        format[++rows] = $1
        threads[rows] = $3
    }
}

function median(values, name,    n, i, j, sorted, value) {
    n = passes[name]
    for (i = 1; i <= n; i++) {
        value = values[name, i]
        for (j = i; j > 1 && sorted[j - 1] > value; j--)
            sorted[j] = sorted[j - 1]
        sorted[j] = value
    }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

END {
    print "| format | threads | pictures/s | torchvision | ratio | processor, a picture | torchvision |"
    print "|---|---|---|---|---|---|---|"
    for (i = 1; i <= rows; i++) {
        own = format[i] SUBSEP "sigma" SUBSEP threads[i]
        other = format[i] SUBSEP "torchvision" SUBSEP threads[i]
        alone = format[i] SUBSEP "torchvision" SUBSEP 0
        if (threads[i] == 1 && passes[alone] && median(rate, alone) > median(rate, other))
            other = alone
        printf "| %s | %d | %.0f | ", toupper(format[i]), threads[i], median(rate, own)
        if (passes[other])
            printf "%.0f | %.2f | %.0f us | %.0f us |\n", median(rate, other), median(rate, own) / median(rate, other),
                median(used, own), median(used, other)
        else
            printf "| | %.0f us | |\n", median(used, own)
    }
}
