package telegram

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// ANSI returns a message with escape codes for a terminal: colours and weights for formatting, addresses after links,
// and buttons in a frame. Control characters are replaced by spaces, so that a text cannot control the terminal.
func (m Message) ANSI() string {
	var b strings.Builder
	if m.Service != "" {
		return style("2", m.Service)
	}
	if m.Media != nil {
		fmt.Fprintf(&b, "%s\n", style("36", strings.TrimSpace("["+m.Media.Kind+" "+printable(m.Media.Name)+"]")))
	}
	b.WriteString(ansiText(m.Text, m.Entities))
	for _, row := range m.Keyboard {
		b.WriteString("\n")
		for i, button := range row {
			if i > 0 {
				b.WriteString(" ")
			}
			b.WriteString(style("7", " "+printable(button.Text)+" "))
		}
	}
	if len(m.Reactions) > 0 {
		b.WriteString("\n")
		for _, r := range m.Reactions {
			b.WriteString(r.Emoji)
		}
	}
	return b.String()
}

// ansiText formats a text. It splits the text at the edges of all entities, so that each piece has a single style.
func ansiText(text string, entities []Entity) string {
	units := utf16.Encode([]rune(text))
	edges := []int{0, len(units)}
	for _, e := range entities {
		edges = append(edges, clampTo(e.Offset, len(units)), clampTo(e.end(), len(units)))
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	var b strings.Builder
	for i := 0; i+1 < len(edges); i++ {
		from, to := edges[i], edges[i+1]
		part := printable(string(utf16.Decode(units[from:to])))
		b.WriteString(style(codes(entities, from), part))
		for _, e := range entities {
			if e.Type == "text_link" && e.end() == to {
				b.WriteString(style("2", " ("+printable(e.URL)+")"))
			}
		}
	}
	return b.String()
}

func clampTo(n, limit int) int { return min(max(n, 0), limit) }

func codes(entities []Entity, at int) string {
	var list []string
	for _, e := range entities {
		if code := ansiCode(e.Type); code != "" && e.Offset <= at && at < e.end() {
			list = append(list, code)
		}
	}
	return strings.Join(list, ";")
}

func ansiCode(kind string) string {
	switch kind {
	case "bold":
		return "1"
	case "italic":
		return "3"
	case "underline":
		return "4"
	case "strikethrough":
		return "9"
	case "spoiler":
		return "2"
	case "code":
		return "33"
	case "pre":
		return "32"
	case "blockquote", "expandable_blockquote":
		return "35"
	case "text_link", "url", "mention", "text_mention", "bot_command", "hashtag":
		return "34"
	}
	return ""
}

// style formats each line of the text separately, because pagers and narrow windows lose a style at the end of a line.
func style(code, text string) string {
	if code == "" || text == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "\x1b[" + code + "m" + line + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || (r >= 0x7f && r < 0xa0)) {
			return ' '
		}
		return r
	}, text)
}
