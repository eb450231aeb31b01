package telegram

import (
	"fmt"
	"strings"
)

// Transcript returns the content of the chat as text. The text contains no IDs and times, so that tests can compare it
// with the text of another chat.
func (c *Chat) Transcript() string { return c.View().Transcript() }

// Transcript returns the view as text. For each message, the text contains the author and the message text. The file,
// the buttons and the reactions follow in indented lines.
func (v View) Transcript() string {
	var b strings.Builder
	for _, m := range v.Messages {
		m.transcribe(&b)
	}
	for _, d := range v.Drafts {
		fmt.Fprintf(&b, "(draft) %s\n", indent(d.Text))
	}
	return b.String()
}

func (m Message) transcribe(b *strings.Builder) {
	if m.Service != "" {
		fmt.Fprintf(b, "* %s\n", m.Service)
		return
	}
	fmt.Fprintf(b, "%s:", m.From.Name)
	if m.Media != nil {
		fmt.Fprintf(b, " [%s %s]", m.Media.Kind, strings.TrimSpace(m.Media.Name))
	}
	fmt.Fprintf(b, " %s\n", indent(m.Text))
	for _, row := range m.Keyboard {
		b.WriteString("   ")
		for _, button := range row {
			fmt.Fprintf(b, " [%s]", button.Text)
		}
		b.WriteString("\n")
	}
	for _, r := range m.Reactions {
		fmt.Fprintf(b, "    %s\n", r.Emoji)
	}
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
