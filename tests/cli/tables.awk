# Tables like those that beginners of machine learning meet, made anew, the same with every awk: numbers come from a
# linear congruential generator whose values doubles hold exactly.
#     awk -v kind=passengers -f tables.awk, or kind=houses
function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
function normal(  i, sum) { for (i = 0; i < 12; i++) sum += uniform(); return sum - 6 }
function pick(list, weights,  names, shares, n, i, at) {
    n = split(list, names, " "); split(weights, shares, " "); at = uniform() * 100
    for (i = 1; i < n && at >= shares[i]; i++) at -= shares[i]
    return names[i]
}
function day(first, last,  year, month) {
    year = first + int(uniform() * (last - first + 1)); month = 1 + int(uniform() * 12)
    return sprintf("%d-%02d-%02d", year, month, 1 + int(uniform() * 28))
}
function passenger(i,  class, sex, age, siblings, parents, fare, port, title, logit) {
    class = pick("1 2 3", "25 20 55"); sex = pick("male female", "64 36"); age = 2 + 70 * uniform() * uniform() + 5 * uniform()
    siblings = int(4 * uniform() * uniform()); parents = int(3 * uniform() * uniform())
    fare = (class == 1 ? 60 : class == 2 ? 22 : 11) * (0.5 + uniform()); port = pick("S C Q", "70 20 10")
    title = age < 14 ? "child" : sex == "female" ? pick("Mrs Miss", "55 45") : pick("Mr Dr Rev", "94 4 2")
    logit = (sex == "female" ? 2.2 : -1.6) + (class == 1 ? 1.3 : class == 3 ? -1.1 : 0) + (age < 14 ? 1.8 : -0.02 * age) \
        - 0.5 * siblings + (port == "C" ? 0.6 : 0) + (sex == "female" && class == 3 ? -0.8 : 0)
    printf "%d,\"Passenger, no. %d\",%d,%s,%s,%d,%d,%.2f,%s,%s,%s,%s\n", i, i, class, sex,
        uniform() < 0.2 ? "" : sprintf("%.1f", age), siblings, parents, fare, uniform() < 0.02 ? "NA" : port, title,
        day(1911, 1912), uniform() < 1 / (1 + exp(-logit)) ? "yes" : "no"
}
function house(i,  area, rooms, town, built, state, energy, garage, distance, heating, price) {
    area = 40 + 180 * uniform(); rooms = 1 + int(area / 28 + uniform()); garage = uniform() < 0.4 ? 1 : 0
    town = pick("Aachen Berlin Bonn Jena Kassel Ulm Trier Hamburg", "12 20 12 10 12 12 10 12"); built = day(1930, 2024)
    state = pick("poor fair good new", "15 35 35 15"); energy = pick("A B C D E F", "10 15 25 25 15 10")
    distance = 20 * uniform() * uniform(); heating = pick("gas heat_pump district oil", "50 20 20 10")
    price = area * (town == "Hamburg" ? 6100 : town == "Berlin" ? 5600 : town == "Bonn" ? 4300 : town == "Kassel" ? 2700 : 3300)
    price *= 0.7 + 0.5 * (substr(built, 1, 4) - 1930) / 94 + (state == "new" ? 0.25 : state == "good" ? 0.1 : state == "poor" ? -0.2 : 0)
    price *= exp(-distance / 40); price += 20000 * garage - 4000 * index("ABCDEF", energy) + 25000 * normal()
    printf "%d,%.1f,%d,%s,%s,%s,%s,%d,%s,%s,seen by agent %d,%.0f\n", i, area, rooms, town, built, state, energy, garage,
        uniform() < 0.05 ? "" : sprintf("%.2f", distance), uniform() < 0.1 ? "?" : heating, int(1000000 * uniform()), price
}
BEGIN {
    state = 20261123
    print kind == "houses" ? "id,area,rooms,town,built,state,energy,garage,distance,heating,note,price" : \
        "id,name,class,sex,age,siblings,parents,fare,port,title,boarded,survived"
    for (i = 1; i <= 10000; i++)
        if (kind == "houses") house(i); else passenger(i)
}
