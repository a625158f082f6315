# claims.csv as a Markdown table.
{
  line = $0; out = "|"
  while (line != "") {
    if (substr(line, 1, 1) == "\"") {
      match(line, /^"([^"]|"")*"/); cell = substr(line, 2, RLENGTH - 2); gsub(/""/, "\"", cell)
      line = substr(line, RLENGTH + 2)
    } else {
      match(line, /^[^,]*/); cell = substr(line, 1, RLENGTH); line = substr(line, RLENGTH + 2)
    }
    column++
    if (NR > 1 && column == 2) cell = "[" cell "](../" cell ")"
    if (NR > 1 && column == 4) { word = cell; sub(/:.*/, "", word); rest = substr(cell, length(word) + 1); cell = "**" word "**" rest }
    out = out " " cell " |"
  }
  print out
  if (NR == 1) print "|---|---|---|---|"
  column = 0
}
