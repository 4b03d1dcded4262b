# Turn template files into C: "@@ name" starts a text, which ends before the next one. Blank lines at
# its end go; what separates blocks is the builder's business.
function finish(    i) {
	if (name == "")
		return
	while (n > 0 && line[n] == "")
		n--
	printf "\nconst char hs_tpl_%s[] =\n", name
	for (i = 1; i <= n; i++)
		printf "\t\"%s%s\"\n", line[i], i < n ? "\\n" : ""
	if (n == 0)
		print "\t\"\""
	print "\t;"
}
function quoted(s) {
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	gsub(/\?/, "\\?", s)
	return s
}
BEGIN {
	print "/* Made from prompt/templates by embed.awk; do not edit. */"
	print "#include \"prompt/templates.h\""
}
/^@@ / {
	finish()
	name = $2
	n = 0
	next
}
{ line[++n] = quoted($0) }
END { finish() }
