package hostile

import (
	"fmt"
	"regexp"
	"strings"
)

// Answer returns an agent's answer of at least size bytes, with headings, paragraphs, lists, code and a table.
func Answer(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "## Step %d: the `reader`\n\nThe **reader** takes *one* line at a time, see [the "+
			"docs](https://go.dev/doc/%d), and "+
			"hands it on.\nIt never blocks longer than 2*3*4 ms.\n\n- first, `open(path_%d)`\n- then **read**\n  - "+
			"and close\n\n"+
			"```go\nfunc read%d(r io.Reader) error {\n\tfor {\n\t\tif err := step(r); err != nil {\n\t\t\treturn "+
			"err\n\t\t}\n\t}\n}\n```\n\n"+
			"| name | cost |\n|---|---:|\n| read | %d |\n| 写 | 2 |\n\n> Note: *never* twice.\n\n", i, i, i, i, i)
	}
	return b.String()
}

// Markdown returns texts of about size bytes. The key of a text is a short description. The texts include a normal
// answer, blocks of each kind, and texts for which careless parsers of Markdown need quadratic time.
func Markdown(size int) map[string]string {
	fill := func(s string) string { return fill(s, size) }
	lines := func(s string) string { return fill(s + "\n") }
	return map[string]string{
		"answer":      Answer(size),
		"words":       fill("one **two** three `four` "),
		"code":        "```go\n" + lines("\tif err := step(r); err != nil {"),
		"list":        lines("- an item with `code` and **bold** words in it"),
		"table":       "| a | b |\n|---|---|\n" + lines("| some | `cell` |"),
		"wide table":  "|" + fill("a|") + "\n|" + fill("-|"),
		"long header": "|" + strings.Repeat("h", 39) + "|" + strings.Repeat("i", 39) + "|\n|-|-|\n" + lines("|x|y|"),
		"brackets":    fill("["),
		"images":      fill("!["),
		"closers":     fill("]"),
		"pairs":       fill("[]"),
		"links":       fill("[a](b"),
		"titles":      fill("[a](b \""),
		"references":  fill("[a][b"),
		"stars":       fill("*"),
		"openers":     fill("*a "),
		"closing":     fill("a* "),
		"mixed":       fill("*a _b ~~c "),
		"nested":      fill("**a *b "),
		"backticks":   fill("` `` ``` ```` "),
		"ticks":       ticks(size),
		"quotes":      fill(">"),
		"quote lines": lines(strings.Repeat(">", 100)),
		"bullets":     fill("- "),
		"deep list":   deepList(size),
		"blank lines": strings.Repeat("- ", 1000) + fill("\n"),
		"tags":        fill("<a "),
		"comments":    fill("<!--"),
		"processing":  fill("<?"),
		"declaration": fill("<!A"),
		"mails":       fill("<a@b"),
		"references&": fill("&amp"),
		"backslashes": fill("\\"),
		"pipes":       fill("|"),
		"escapes":     "|a|\n|-|\n" + lines("|`\\|`|"),
		"headings":    lines("#"),
		"fences":      lines("```"),
		"setext":      lines("a\n="),
		"rules":       lines("***"),
		"newlines":    fill("\n"),
		"spaces":      fill(" ") + "x",
		"tabs":        fill("\t"),
		"bytes":       fill("\xff"),
		"returns":     fill("\r"),
		"joiners":     "👩" + fill("\u200d"),
		"accents":     "e" + fill("\u0301"),
		"urls":        fill("https://a.example/_b_*c*"),

		"whole links":   fill("[a](https://a.example) "),
		"numbers":       fill("1. "),
		"tasks":         lines("- [ ] a [x"),
		"nested quotes": lines("> - > 1. a"),
		"file marks":    fill("[[file: a") + "\n\nb",
		"entities":      fill("&#x41;&copy;&#"),
		"html":          fill("<b><i>"),
		"families":      fill("👩‍👩‍👧"),
		"flags":         fill("🇩🇪🇫"),
		"syllables":     fill("\u1100\u1161\u11a8"),
		"one word":      fill("a"),
		"short lines":   lines("a"),
		"indented":      lines("    a"),
		"growing lines": growingLines(size),
		"dunders":       fill("__a_b"),
	}
}

// Printed returns texts of about size bytes as programs print them and agents repeat them: terminal codes, diffs, JSON,
// shell commands, paths, error messages, and texts that are similar to secrets.
func Printed(size int) map[string]string {
	fill := func(s string) string { return fill(s, size) }
	lines := func(s string) string { return fill(s + "\n") }
	return map[string]string{
		"colours":         fill("\x1b[31ma"),
		"open codes":      fill("\x1b["),
		"digits of codes": "\x1b[" + fill("1;"),
		"titles":          fill("\x1b]0;a"),
		"long title":      "\x1b]0;" + fill("a"),
		"links":           fill("\x1b]8;;https://a\x1b\\"),
		"escapes":         fill("\x1b"),
		"progress":        fill("10 %\r"),
		"diff":            "--- a/x\n+++ b/x\n" + lines("@@ -1,2 +1,2 @@ f\n-a\n+b\n c"),
		"stretches":       lines("@@ -1 +1 @@"),
		"added":           "@@ -0,0 +1,1000000 @@\n" + lines("+a"),
		"files of a diff": lines("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"),
		"arrays":          fill("["),
		"objects":         fill(`{"a":`),
		"values":          "[" + strings.TrimSuffix(fill("1,"), ",") + "1]",
		"long text":       `"` + fill("a") + `"`,
		"escaped":         `"` + fill(`\u00e9`),
		"quotes":          fill(`"`),
		"apostrophes":     fill("'"),
		"number":          fill("9"),
		"substitutions":   fill("$("),
		"groups":          fill("("),
		"pipes":           fill("a|"),
		"commands":        fill("a && "),
		"semicolons":      fill(";"),
		"redirections":    fill("<<E "),
		"braces":          fill("{a,"),
		"tokens":          fill("ghp_"),
		"long tokens":     fill("ghp_" + strings.Repeat("a", 35) + "-"),
		"keys":            lines("-----BEGIN A"),
		"near a secret":   fill("correct-horse-battery-stapl "),
		"in a secret":     fill("correct-horse-"),
		"assignments":     lines("A_TOKEN=abc"),
		"open quote":      lines("A_TOKEN=\"abc"),
		"path":            fill("/a"),
		"up":              fill("../"),
		"home":            fill("~/"),
		"limits":          fill("limit "),
		"resets":          fill("resets in 1 "),
		"quotas":          fill("hit your a b c "),
		"messages":        fill(`"message":"`),
		"statuses":        fill("status 4"),
		"summaries":       fill("<SUMMARY>"),
		"shells":          fill("```!"),
		"ats":             fill("@"),
		"schemes":         fill("https://"),
		"aliases":         "a: &a [x]\n" + lines("b: &b [*a, *a]"),
		"front matter":    "---\n" + lines("a: b"),
		"tables of TOML":  lines("[a.b]"),
		"dotted":          fill("a."),
		"NUL":             fill("\x00"),
	}
}

func fill(s string, size int) string { return strings.Repeat(s, size/len(s)+1)[:size] }

func ticks(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("`", i) + " ")
	}
	return b.String()
}

func deepList(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("  ", i%400) + "- x\n")
	}
	return b.String()
}

// growingLines returns lines of increasing length. Each line begins with the whole previous line.
func growingLines(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("a", i) + "\n")
	}
	return b.String()
}

// Lines returns a function that generates texts for Linear. From the recordings, it takes one line of each kind. For
// each of these lines, the function generates two texts. The first text repeats the line unchanged. In the second text,
// each repetition of the line has a different ID.
func Lines(recordings [][]byte) func(size int) map[string]string {
	kinds := map[string]string{}
	for _, recording := range recordings {
		for line := range strings.Lines(string(recording)) {
			kind := line[:min(len(line), kindBytes)]
			if len(line) > len(kinds[kind]) && len(line) < small/20 {
				kinds[kind] = strings.TrimSuffix(line, "\n")
			}
		}
	}
	return func(size int) map[string]string {
		texts := map[string]string{}
		for kind, line := range kinds {
			texts["same "+kind] = strings.Repeat(line+"\n", size/len(line)+1)
			var other strings.Builder
			for i := 0; other.Len() < size; i++ {
				other.WriteString(named.ReplaceAllString(line, fmt.Sprintf(`"$1":"n%d"`, i)) + "\n")
			}
			texts["other "+kind] = other.String()
		}
		return texts
	}
}

// kindBytes decides which lines are of the same kind: their first kindBytes bytes are equal.
const kindBytes = 48

// named matches a JSON field that contains an ID.
var named = regexp.MustCompile(`"(id|toolCallId|tool_use_id|itemId|callId|messageId)":"[^"]*"`)

// Objects returns JSON objects of about size bytes: with many members, deep nesting, long names and long texts.
func Objects(size int) map[string]string {
	many := func(member func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(member(i))
		}
		return b.String()
	}
	const depth = 4000 // nesting depth; encoding/json accepts at most 10,000
	return map[string]string{
		"members":     "{" + many(func(i int) string { return fmt.Sprintf(`"a%d":%d`, i, i) }) + "}",
		"same member": "{" + many(func(int) string { return `"a":"/d/y"` }) + "}",
		"list":        `{"edits":[` + many(func(i int) string { return fmt.Sprintf(`{"path":"/d/%d"}`, i) }) + "]}",
		"long names": "{" + many(func(i int) string {
			return fmt.Sprintf(`"%s%d":1`, strings.Repeat("a", 2000), i)
		}) + "}",
		"deep": strings.Repeat(`{"a":`, depth) + "[" + many(func(i int) string { return fmt.Sprint(i) }) + "]" +
			strings.Repeat("}", depth),
		"deep lists": `{"a":[` + many(func(int) string {
			return strings.Repeat("[", depth/2) + strings.Repeat("]", depth/2)
		}) + "]}",
		"text":  `{"a":"` + fill(`\n\u0041`, size/8*8) + `"}`,
		"paths": `{"a":[` + many(func(i int) string { return `"` + strings.Repeat("../x/", 100) + `"` }) + "]}",
	}
}
