# Reads public headers: every name in them, and the comment that says what it is. As Doxygen's input filter it writes the
# declarations of one header with Doxygen's comments; otherwise it lists names.
#
#     awk -f scripts/reference.awk include/sigma/base.h                      a header for Doxygen
#     awk -v list=undocumented -f scripts/reference.awk include/sigma/*.h    "FILE:LINE: NAME" of each that no comment says anything of
#     awk -v list=names -f scripts/reference.awk include/sigma/*.h           all functions, types, macros and constants
#
# A name is documented by the comment right before it or behind it. Further:
#   - a macro for a function with options (sgm_csv_reader_with) shares its comment with the function, whichever of them has
#     it, and its struct is at least that of its options;
#   - a row X(name, ..., "text") of a list documents what the list declares;
#   - what is called ..._free or ..._retain does what sigma/sigma.h says of all of these.

FNR == 1 { if (NR > 1) end_of_file(); begin_file() }
{ read_line($0) }
END { end_of_file(); exit failed }

function begin_file(    k)
{
    for (k in name) delete name[k]
    for (k in row_count) delete row_count[k]
    for (k in looked_at) delete looked_at[k]
    for (k in define) delete define[k]
    for (k in defined) delete defined[k]
    file = FILENAME
    header = file
    sub(/.*\//, "", header)
    items = rows = depth = 0
    state = code = lead = trail = intro = ""
}

# ---- lines: comments, directives, code ----

function read_line(s,    at, end)
{
    if (state == "comment") {
        comment = comment "\n" s
        if (s ~ /\*\//) end_comment()
    } else if (state == "directive") {
        directive = substr(directive, 1, length(directive) - 1) " " s
        if (s !~ /\\$/) end_directive()
    } else if (s ~ /^#/) {
        directive = s
        began = FNR
        state = "directive"
        if (s !~ /\\$/) end_directive()
    } else if (s ~ /^[ \t]*$/) {
        flush_list()
        lead = ""
    } else if (s ~ /^[ \t]*\/\*/ && code == "") {
        flush_list()
        begin_comment(s, "before")
    } else if (at = index(s, "/*")) {
        first_of_line = items + 1
        read_code(substr(s, 1, at - 1))
        end = index(s, "*/")
        if (end && substr(s, end + 2) !~ /^[ \t]*$/) { # code goes on behind it
            comment = substr(s, at, end + 2 - at)
            place = "behind"
            end_comment()
            read_code(substr(s, end + 2))
        } else
            begin_comment(substr(s, at), "behind")
    } else {
        first_of_line = items + 1
        read_code(s)
    }
}

function begin_comment(s, where)
{
    comment = s
    place = where
    state = "comment"
    if (s ~ /\*\//) end_comment()
}

# The words of a comment, without its stars.
function words(s)
{
    sub(/^[ \t]*\/\*[ ]?/, "", s)
    sub(/[ \t\n]*\*\/[ \t]*$/, "", s)
    gsub(/\n[ \t]*\*[ ]?/, "\n", s)
    gsub(/\n[ \t][ \t]*\n/, "\n\n", s)
    return s
}

function end_comment(    s)
{
    state = ""
    s = words(comment)
    began = FNR
    if (place == "behind") {
        gsub(/\n[ \t]*/, " ", s)
        if (items >= first_of_line)
            add_words(kind[items] == "end" ? parent[items] : items, s)
        else
            trail = s
        lead = ""
    } else if (intro == "") {
        intro = s
    } else if (s ~ /^(====|---)/) {
        section(s)
    } else
        lead = s
}

function add_words(k, s) { doc[k] = doc[k] (doc[k] == "" ? "" : "\n") s }

function section(s,    title, rest)
{
    title = s
    rest = ""
    if (index(s, "\n")) {
        title = substr(s, 1, index(s, "\n") - 1)
        rest = substr(s, index(s, "\n") + 1)
    }
    if (title !~ /(====|---)$/) { # the title goes over several lines
        title = s
        rest = ""
        gsub(/\n/, " ", title)
    }
    new_item(title ~ /^=/ ? "section" : "subsection", "")
    gsub(/^[=-]* | [=-]*$|`/, "", title)
    text[items] = title
    sub(/^\n*/, "", rest)
    doc[items] = rest
    lead = rest
}

function end_directive(    name_of, body)
{
    state = ""
    flush_list()
    if (directive ~ /^#include <sigma\//) read_lists(between(directive, "<sigma/", ">"))
    if (directive !~ /^#define/) { if (directive !~ /^#undef/) lead = ""; return }
    gsub(/\/\*[^*]*\*\//, "", directive)
    gsub(/[ \t]+/, " ", directive)
    sub(/^#define /, "", directive)
    match(directive, /^[A-Za-z0-9_]+/)
    name_of = substr(directive, 1, RLENGTH)
    body = substr(directive, RLENGTH + 1)
    define[name_of] = body
    if (name_of ~ /^SIGMA_.*_H$/) return
    if (body ~ /^\(X\)/) read_rows(name_of, body)
    if (body ~ /##/ || name_of ~ /_BEHIND/ || (name_of in defined)) { lead = ""; return } # helpers of the header itself
    defined[name_of] = 1
    first_of_line = items + 1
    new_item("macro", name_of)
    text[items] = body
}

# The lists of a header that this one includes, which may use them.
function read_lists(included,    path, s, more, name_of)
{
    path = file
    sub(/[^\/]*$/, included, path)
    if (path in looked_at) return
    looked_at[path] = 1
    while ((getline s < path) > 0) {
        while (s ~ /\\$/ && (getline more < path) > 0) s = substr(s, 1, length(s) - 1) " " more
        gsub(/[ \t]+/, " ", s)
        if (s ~ /^#include <sigma\//) read_lists(between(s, "<sigma/", ">"))
        if (!match(s, /^#define [A-Z_]+\(X\)/)) continue
        name_of = substr(s, 9, RLENGTH - 11)
        read_rows(name_of, substr(s, 9 + length(name_of)))
    }
    close(path)
}

# Rows of #define LIST(X) X(a, b, "text") ..., to be put in where the list is used.
function read_rows(list_name, body,    part, count, k)
{
    count = split(body, part, /[ ]X\(/)
    row_count[list_name] = 0
    for (k = 2; k <= count; k++) {
        sub(/\)[ ]*$/, "", part[k])
        row[list_name, ++row_count[list_name]] = part[k]
    }
}

# ---- code: statements ----

function read_code(s,    at, c)
{
    for (;;) {
        if (!match(s, depth && kind_of[depth] == "enum" ? "[;{},]" : "[;{}]")) break
        at = RSTART
        c = substr(s, at, 1)
        add_code(substr(s, 1, at - 1))
        s = substr(s, at + 1)
        if (c == "," && unbalanced(code)) code = code ","
        else if (c == "{") open_brace()
        else if (c == "}") close_brace()
        else statement()
    }
    add_code(s)
}

function add_code(s)
{
    if (code ~ /^[ \t]*$/) {
        code = ""
        began = FNR
    }
    if (s !~ /^[ \t]*$/) code = code " " s
}

function unbalanced(s) { return gsub(/\(/, "", s) != gsub(/\)/, "", s) }

function clean(s)
{
    gsub(/SGM_API|SGM_PRINTF\([0-9, ]*\)|SGM_BY_NAME/, "", s)
    gsub(/[ \t]+/, " ", s)
    gsub(/^ | $/, "", s)
    return s
}

function new_item(what, called)
{
    name[++items] = called
    kind[items] = what
    line[items] = began
    doc[items] = lead (lead != "" && trail != "" ? "\n" : "") trail
    parent[items] = depth ? item_of[depth] : 0
    text[items] = ""
    lead = trail = ""
}

function open_brace(    what)
{
    code = clean(code)
    if (code ~ /^extern/) { kind_of[++depth] = "extern"; item_of[depth] = 0; code = ""; lead = ""; return }
    what = code ~ /enum/ ? "enum" : code ~ /union/ ? "union" : "struct"
    new_item(what, "")
    kind_of[++depth] = what
    item_of[depth] = items
    match(code, /[A-Za-z0-9_]+$/)
    name[items] = substr(code, RSTART)
    text[items] = code
    code = lead = ""
}

function close_brace()
{
    if (code !~ /^[ \t]*$/) statement()
    if (kind_of[depth] == "extern") { depth--; code = ""; return }
    closing = item_of[depth]
    depth--
    lead = trail = ""
    code = "}"
}

# What ends with a semicolon, or with a comma or a brace in an enum.
function statement(    s, called)
{
    s = clean(code)
    code = ""
    if (s ~ /^}/) { # } name;
        s = substr(s, 2)
        gsub(/ /, "", s)
        if (s != "") name[closing] = s
        if (trail != "") { doc[closing] = trail; trail = "" }
        new_item("end", "")
        parent[items] = closing
        return
    }
    if (s == "") return
    if (depth && kind_of[depth] == "enum") {
        if (s ~ /^[A-Z_]+\([A-Z_]+\)/) {
            code = s
            flush_list()
            s = code
            code = ""
            if (s == "") return
        }
        called = s
        sub(/ *=.*/, "", called)
        new_item("constant", called)
    } else if (depth && kind_of[depth] != "extern") {
        new_item("member", names_of_members(s))
    } else if (s ~ /^typedef .*\(\*/) {
        new_item("type", between(s, "(*", ")"))
    } else if (s ~ /^typedef/) {
        match(s, /[A-Za-z0-9_]+$/)
        new_item("type", substr(s, RSTART))
    } else {
        called = s
        sub(/\(.*/, "", called)
        match(called, /[A-Za-z0-9_]+$/)
        new_item("function", substr(called, RSTART))
    }
    text[items] = s
}

function between(s, from, to)
{
    s = substr(s, index(s, from) + length(from))
    return substr(s, 1, index(s, to) - 1)
}

# "int64_t stride[2], before[2]" declares stride and before.
function names_of_members(s,    part, count, k, all)
{
    if (s ~ /\(\*/) return between(s, "(*", ")")
    gsub(/\[[^]]*\]/, "", s)
    count = split(s, part, ",")
    for (k = 1; k <= count; k++) {
        match(part[k], /[A-Za-z0-9_]+ *$/)
        all = all (k > 1 ? " " : "") substr(part[k], RSTART)
    }
    gsub(/ +/, " ", all)
    return all
}

# LIST(MACRO) without a semicolon declares what the list's rows say.
function flush_list(    s, list_name, macro, k, count, parameter, value, body, text_of, n)
{
    s = clean(code)
    while (match(s, /^[A-Z_]+\([A-Z_]+\)/)) {
        list_name = substr(s, 1, index(s, "(") - 1)
        macro = between(s, "(", ")")
        s = clean(substr(s, RLENGTH + 1))
        code = s
        count = split(between(define[macro], "(", ")"), parameter, /, */)
        for (k = 1; k <= row_count[list_name]; k++) {
            body = define[macro]
            body = substr(body, index(body, ")") + 1)
            split_row(row[list_name, k], value)
            for (n = 1; n <= count; n++) {
                gsub("##" parameter[n] "##|##" parameter[n], value[n], body)
                if (parameter[n] != "name") gsub("[(]" parameter[n] "[)]", value[n], body)
            }
            text_of = value[count]
            gsub(/"/, "", text_of)
            body = clean(body)
            sub(/[,;]$/, "", body)
            new_item(depth && kind_of[depth] == "enum" ? "constant" : "function", "")
            text[items] = body
            called = body
            sub(depth && kind_of[depth] == "enum" ? " *=.*" : "\\(.*", "", called)
            match(called, /[A-Za-z0-9_]+$/)
            name[items] = substr(called, RSTART)
            doc[items] = text_of
        }
    }
    code = s
}

# a, b, "text, with commas"
function split_row(s, value,    n)
{
    n = 0
    while (s != "") {
        sub(/^[ ,]+/, "", s)
        if (s ~ /^"/) match(s, /^"[^"]*"/)
        else match(s, /^[^,]*/)
        value[++n] = substr(s, 1, RLENGTH)
        s = substr(s, RLENGTH + 1)
    }
    return n
}

# ---- what belongs together ----

function end_of_file(    k, f, type)
{
    for (k in item) delete item[k]
    for (k in options_of) delete options_of[k]
    for (k = 1; k <= items; k++)
        if (kind[k] == "function" || kind[k] == "struct") item[name[k]] = k
    for (k = 1; k <= items; k++)
        if (kind[k] == "macro" && (f = function_of(k))) {
            type = options_type
            if (name[f] == name[k] "_with") share(k, f)
            if (type in item) options_of[type] = options_of[type] (options_of[type] == "" ? "" : ", ") "#" name[k]
        }
    for (k = 1; k <= items; k++) {
        if (kind[k] == "struct" && name[k] in options_of && doc[k] == "") doc[k] = "Options."
        if (kind[k] == "member" && name[k] == "struct_size") doc[k] = "sizeof of the struct; the macros set it."
        if (kind[k] == "function" && doc[k] == "" && name[k] ~ /_free$/) doc[k] = "Frees it; NULL: nothing happens."
        if (kind[k] == "function" && doc[k] == "" && name[k] ~ /_retain$/) doc[k] = "One more reference, which is given back by freeing; returns what it was given."
    }
    if (list == "") write_header()
    else write_list()
}

# The function that a macro calls in the end, 0 if it is none with options; options_type becomes their struct.
function function_of(k,    body, called, count)
{
    options_type = ""
    body = text[k]
    for (count = 0; count < 4; count++) {
        if (match(body, /sgm_[a-z0-9_]*_options/)) options_type = substr(body, RSTART, RLENGTH)
        sub(/^\([^)]*\) */, "", body)
        match(body, /^[A-Za-z0-9_]+/)
        called = substr(body, 1, RLENGTH)
        if (called ~ /^SGM_WITH_OPTIONS/) called = between(body, "(", ",")
        if (called in item) {
            if (options_type == "" && match(body, /SGM_[A-Z]*_OPTIONS/) && match(define[substr(body, RSTART, RLENGTH)], /sgm_[a-z0-9_]*_options/))
                options_type = substr(define["SGM_LAYER_OPTIONS"], RSTART, RLENGTH)
            return options_type == "" ? 0 : item[called]
        }
        if (!(called in define)) return 0
        body = define[called]
    }
    return 0
}

# A macro and the function beneath it have one description.
function share(macro, beneath)
{
    if (doc[macro] == "") doc[macro] = doc[beneath]
    if (doc[beneath] == "" && doc[macro] != "") doc[beneath] = "The function beneath " name[macro] "."
}

# ---- lists ----

function write_list(    k, part, count, n)
{
    for (k = 1; k <= items; k++) {
        if (kind[k] == "end" || kind[k] ~ /section/ || name[k] == "") continue
        count = split(name[k], part, " ")
        for (n = 1; n <= count; n++) {
            if (list == "names" && kind[k] != "member") print part[n]
            if (list == "undocumented" && doc[k] == "") {
                printf "%s:%d: %s%s\n", file, line[k], (kind[k] == "member" ? name[parent[k]] "." : ""), part[n]
                failed = 1
            }
        }
    }
}

# ---- a header for Doxygen ----

function write_header(    k, in_section, in_subsection)
{
    sub(/\.h$/, "", header)
    if (header == "sigma") printf "/** @mainpage Sigma\n%s*/\n", prose(intro)
    printf "/** @file\n@brief See @ref %s. */\n/** @defgroup %s %s.h\n%s@{ */\n", header, header, header, prose(intro)
    for (k = 1; k <= items; k++) {
        if (kind[k] == "section") {
            end_groups(in_section + in_subsection)
            in_section = begin_group(k)
            in_subsection = 0
        } else if (kind[k] == "subsection") {
            end_groups(in_subsection)
            in_subsection = begin_group(k)
        } else
            write_item(k)
    }
    end_groups(in_section + in_subsection + 1)
}

function begin_group(k,    id)
{
    id = tolower(header " " text[k])
    sub(/[:,].*/, "", id)
    gsub(/[^a-z0-9]+/, "_", id)
    if (groups[id]++) id = id "_" groups[id]
    printf "/** @defgroup %s %s%s\n%s@{ */\n", id, toupper(substr(text[k], 1, 1)), substr(text[k], 2), prose(doc[k])
    return 1
}

function end_groups(count)
{
    while (count-- > 0) print "/** @} */"
}

function write_item(k,    said, f)
{
    said = doc[k]
    f = kind[k] == "macro" ? function_of(k) : 0
    if (f) said = said "\n\nOptions come last, by name: see #" options_type "."
    if (kind[k] == "struct" && name[k] in options_of) said = said "\n\nFor " options_of[name[k]] "."
    if (kind[k] != "end" && name[k] != "" && doc[k] != "") printf "/** %s*/\n", prose(said)
    if (f) print prototype(k, f)
    else if (kind[k] == "macro") print "#define " name[k] (text[k] ~ /^\(/ ? substr(text[k], 1, index(text[k], ")")) : text[k])
    else if (kind[k] ~ /^(struct|union|enum)$/) print text[k] " {"
    else if (kind[k] == "end") print "}" (text[parent[k]] ~ /^(typedef|union)/ ? " " name[parent[k]] : "") ";"
    else if (kind[k] == "member") write_members(k, prose(said))
    else print text[k] (kind[k] == "constant" ? "," : ";")
}

# Members that are declared together, each by itself: Doxygen gives a comment to the first alone.
function write_members(k, said,    part, count, n, base)
{
    count = name[k] ~ / / ? split(text[k], part, / *, */) : 0
    if (count == 0) {
        print text[k] ";"
        return
    }
    match(part[1], /[ *]+[A-Za-z0-9_]+(\[[^\]]*\])*$/)
    base = substr(part[1], 1, RSTART - 1)
    part[1] = substr(part[1], RSTART + 1)
    for (n = 1; n <= count; n++)
        print (n > 1 ? "/** " said "*/\n" : "") base " " part[n] ";"
}

# A macro with options as the function that it looks like; `...` are the options.
function prototype(k, f,    s, given)
{
    s = text[f]
    given = substr(s, index(s, "(") + 1)
    s = substr(s, 1, index(s, "(") - 1)
    sub(/[A-Za-z0-9_]+$/, name[k], s)
    if (text[k] !~ /SGM_WITH_OPTIONS/) return s "(...);"
    sub(/,? *const [a-z0-9_]*_options \*[a-z_]*\)$/, "", given)
    return s "(" given (given == "" ? "" : ", ") "...);"
}

# A comment as Doxygen reads it: what is indented by four is code, or a list of headers, and what is below a head that is
# indented far is a table; names of Sigma are links, and all signs stand for themselves.
function prose(s,    part, count, k, said, block, code_block, in_table)
{
    count = split(s, part, "\n")
    for (k = 1; k <= count; k++) {
        in_table = part[k] != "" && (in_table || part[k] ~ /^          /)
        if (in_table)
            part[k] = "    " part[k]
        if (part[k] ~ /^    [a-z]+\.h  /) {
            sub(/\.h +/, ".h: ", part[k])
            block = block "- " substr(part[k], 5) "\n"
        } else if (part[k] ~ /^    / || (code_block != "" && part[k] == "" && part[k + 1] ~ /^    /)) {
            said = said escaped(block)
            block = ""
            code_block = code_block substr(part[k], 5) "\n"
        } else {
            said = said listing(code_block)
            code_block = ""
            block = block part[k] "\n"
        }
    }
    return said listing(code_block) escaped(block)
}

function listing(s) { return s == "" ? "" : "@code{" (s ~ /;/ ? ".c" : ".unparsed") "}\n" s "@endcode\n" }

function escaped(s,    part, count, k, said, word)
{
    count = split(s, part, "`")
    for (k = 1; k <= count; k++) {
        if (k % 2 == 0) {
            said = said "`" part[k] "`"
            continue
        }
        s = part[k]
        while (match(s, /sgm_[a-z0-9_]*[a-z0-9]|SGM_[A-Z0-9_]*[A-Z0-9]|[a-z]+\.h/)) {
            word = substr(s, RSTART, RLENGTH)
            said = said signs(substr(s, 1, RSTART - 1))
            s = substr(s, RSTART + RLENGTH)
            if (word ~ /\.h$/) said = said "@ref " substr(word, 1, length(word) - 2) " \"" word "\""
            else said = said (s ~ /^\([^)]/ ? "@ref " word " \"" word "\"" : "#" word)
        }
        said = said signs(s)
    }
    return said
}

function signs(s)
{
    gsub(/[\\@&<>#%*_|~]/, "\\\\&", s)
    return s
}
