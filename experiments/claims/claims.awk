# Reads results of the experiments (CSV files named on the command line) and prints the claims with their figures and verdicts as CSV.
# A file experiments/NAME/results.csv is "NAME", any other NAME/FILE.csv is "NAME/FILE". Every figure and verdict below is a function of these
# files; where a file is missing the verdict is "not run".

# The cells of a CSV line into cell[1..n]; quotes as in RFC 4180.
function cells(line,    n, field) {
  split("", cell)
  for (n = 1; ; n++) {
    if (substr(line, 1, 1) == "\"") {
      match(line, /^"([^"]|"")*"/)
      field = substr(line, 2, RLENGTH - 2)
      gsub(/""/, "\"", field)
      line = substr(line, RLENGTH + 1)
    } else {
      match(line, /^[^,]*/)
      field = substr(line, 1, RLENGTH)
      line = substr(line, RLENGTH + 1)
    }
    cell[n] = field
    if (line == "") return n
    line = substr(line, 2)
  }
}

FNR == 1 {
  file = FILENAME
  sub(/\.csv$/, "", file); sub(/\/results$/, "", file)
  count = split(file, part, "/")
  file = part[count]
  if (FILENAME !~ /\/results\.csv$/) file = part[count - 1] "/" part[count]
  columns = cells($0)
  for (i = 1; i <= columns; i++) name[i] = cell[i]
  next
}
{
  n = cells($0)
  row = ++rows[file]
  for (i = 1; i <= n; i++) value[file, row, name[i]] = cell[i]
}

# Whether a row fulfils "column=value column=value ..."; a value that begins with ~ is a regular expression.
function fits(file, row, filter,    n, i, pair, key, wanted) {
  n = split(filter, pair, " ")
  for (i = 1; i <= n; i++) {
    key = pair[i]; sub(/=.*/, "", key)
    wanted = pair[i]; sub(/^[^=]*=/, "", wanted)
    if (wanted ~ /^~/) {
      if (value[file, row, key] !~ substr(wanted, 2)) return 0
    } else if (value[file, row, key] "" != wanted && !(wanted ~ /^[0-9.e+-]+$/ && value[file, row, key] != "" && value[file, row, key] + 0 == wanted + 0)) return 0
  }
  return 1
}

# Sets found, mean, low, high of a column over the rows that fit.
function look(file, column, filter,    r, x) {
  found = mean = 0; low = 1e300; high = -1e300
  for (r = 1; r <= rows[file]; r++) {
    if (!fits(file, r, filter) || value[file, r, column] == "") continue
    x = value[file, r, column] + 0
    found++; mean += x
    if (x < low) low = x
    if (x > high) high = x
  }
  if (found) mean /= found
  else missing = missing " " file "[" filter "]." column
  return mean
}
function least(file, column, filter) { look(file, column, filter); return low }
function most(file, column, filter) { look(file, column, filter); return high }

# "2 of 3": how many of the runs that fit have a verdict that matches.
function verdicts(file, filter, wanted,    r, n, k) {
  for (r = 1; r <= rows[file]; r++) if (fits(file, r, filter)) { n++; if (value[file, r, "verdict"] ~ wanted) k++ }
  if (!n) missing = missing " " file "[" filter "]"
  all = n > 0 && k == n; none = n > 0 && !k
  return (k + 0) " of " (n + 0)
}

# One line. `verdict` is given by the figures; a claim whose figures are missing is not judged.
function claim(text, where, figures, verdict) {
  if (missing != "") { verdict = "not run"; figures = "no" missing }
  missing = ""
  gsub(/"/, "\"\"", text); gsub(/"/, "\"\"", figures); gsub(/"/, "\"\"", verdict)
  printf "\"%s\",%s,\"%s\",\"%s\"\n", text, where, figures, verdict
}
function pick(yes, otherwise) { return yes ? "confirmed" : otherwise }
