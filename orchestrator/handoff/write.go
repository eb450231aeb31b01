package handoff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// Text before and after the history. Without this text, the agent might mistake the history for a request.
const (
	head = "[What was said in this session that you do not know yet. It is background, not a request.]\n"
	tail = "[End of what was said before. The request:]\n\n"

	leftOut = "[%d turns before are left out.]\n"
)

// minShortened is the minimum size of a shortened turn in tokens. If the rest of the budget is smaller, Write leaves
// out the turn.
const minShortened = 200

// Repeated replaces a prompt in the history if the agent gets the same prompt again, below the history.
const Repeated = "[the request below]"

// Told contains history in the form in which an agent gets it.
type Told struct {
	Text    string // to be put before the prompt; empty without history
	Turns   int    // number of turns in Text, including shortened ones
	LeftOut int    // number of turns that are shortened or missing
	// Shortened is true if Text contains only the beginning and the end of one of the turns.
	Shortened bool
	Tokens    int // estimated tokens of Text
}

// Write formats turns so that the result has at most budget tokens. It prefers the newest turns. If a turn is too long,
// Write uses the beginning and the end of that turn. The turns must be in order. The summary describes what happened
// before them; it may be empty.
func Write(turns []orchestrator.Turn, summary string, budget int) Told {
	turns = slices.DeleteFunc(slices.Clone(turns), func(t orchestrator.Turn) bool {
		return t.Prompt.Text == "" && t.Outcome.Text == ""
	})
	if len(turns) == 0 && summary == "" || budget <= 0 {
		return Told{LeftOut: len(turns)}
	}
	if summary != "" {
		summary = "Summary of what was said first:\n" + summary + "\n"
	}
	room := budget - Tokens(head+summary+fmt.Sprintf(leftOut, len(turns))+tail) - 1
	var told Told
	var newestFirst []string
	for _, t := range slices.Backward(turns) {
		text := wholeTurn(t)
		n := Tokens(text) + 1
		if n > room {
			if len(newestFirst) > 0 && room < minShortened {
				break
			}
			text = shorten(t, room)
			newestFirst = append(newestFirst, text)
			told.LeftOut++
			told.Shortened = true
			told.Turns++
			break
		}
		room -= n
		newestFirst = append(newestFirst, text)
		told.Turns++
	}
	var b strings.Builder
	b.WriteString(head)
	b.WriteString(summary)
	if missing := len(turns) - told.Turns; missing > 0 {
		told.LeftOut += missing
		fmt.Fprintf(&b, leftOut, missing)
	}
	for _, text := range slices.Backward(newestFirst) {
		b.WriteString(text)
	}
	b.WriteString(tail)
	told.Text = b.String()
	told.Tokens = Tokens(told.Text)
	return told
}

// Whole returns how many turns are missing from Text. Shortened turns do not count.
func (t Told) Whole() int {
	if t.Shortened {
		return t.LeftOut - 1
	}
	return t.LeftOut
}

// wholeTurn formats a turn in full. It includes the names of attached files, because the agent may read these files.
func wholeTurn(t orchestrator.Turn) string { return turnText(t, question(t), t.Outcome.Text) }

// shorten formats a turn without the middle of its answer. If the prompt is longer than half of the budget, it also
// leaves out the middle of the prompt.
func shorten(t orchestrator.Turn, budget int) string {
	if text := wholeTurn(t); Tokens(text) <= budget {
		return text
	}
	room := budget - Tokens(turnText(t, "", "-"))
	asked := Middle(question(t), max(room/2, room-Tokens(t.Outcome.Text)))
	return turnText(t, asked, Middle(t.Outcome.Text, room-Tokens(asked)))
}

func turnText(t orchestrator.Turn, asked, answered string) string {
	to, from := "User", fmt.Sprintf("Assistant (%s)", t.Agent)
	switch t.Entry.Kind {
	case orchestrator.ConsultationEntry:
		to, from = "Question to "+modelOf(t, t.Model), "Advice of "+modelOf(t, t.Outcome.Model)
	case orchestrator.WorkEntry:
		to, from = "Task for "+modelOf(t, t.Model), "Report of "+modelOf(t, t.Outcome.Model)
	}
	text := to + ": " + asked + "\n"
	if answered != "" {
		text += from + ": " + answered + "\n"
	}
	if t.Entry.Seen {
		text = "[You may have seen this.]\n" + text
	}
	switch t.State {
	case orchestrator.TurnAborted:
		text += "[The user stopped this turn before its end.]\n"
	case orchestrator.TurnInterrupted, orchestrator.TurnFailed:
		text += "[This turn failed before its end.]\n"
	}
	return text
}

func modelOf(t orchestrator.Turn, m cli.ModelID) string {
	return strings.TrimSpace(fmt.Sprint(t.Agent, " ", cmp.Or(m, t.Model)))
}

// question returns the prompt of a turn, with the names of the attached files. If the agent refused to answer, question
// leaves out pictures, because a picture may be the reason for the refusal.
func question(t orchestrator.Turn) string {
	p := t.Prompt
	if t.Outcome.Recovery.Kind == cli.Refused {
		p = WithoutPictures(p)
	}
	text := p.Text
	for _, a := range p.Attachments {
		text += Attached(a)
	}
	return text
}

// WithoutPictures returns a prompt in which a note replaces the pictures.
func WithoutPictures(p orchestrator.Prompt) orchestrator.Prompt {
	rest := slices.DeleteFunc(slices.Clone(p.Attachments), func(a orchestrator.Attachment) bool { return a.Image })
	if len(rest) < len(p.Attachments) {
		p.Text = strings.TrimSpace(p.Text + "\n[A picture came along. The model refused it, so it is left out.]")
	}
	p.Attachments = rest
	return p
}

// Attached returns the text with which a prompt refers to a file.
func Attached(a orchestrator.Attachment) string {
	return "\n" + a.String()
}

// Middle shortens a text to at most budget tokens. It keeps the beginning and the end. Between them it puts a note
// about the length of the missing middle.
func Middle(s string, budget int) string {
	all := Tokens(s)
	if all <= budget {
		return s
	}
	runes := []rune(s)
	for keep := len(runes) * max(budget, 0) / max(all, 1); keep > 0; keep -= 1 + keep/20 {
		first, last := runes[:keep/2], runes[len(runes)-(keep-keep/2):]
		gone := all - Tokens(string(first)) - Tokens(string(last))
		cut := fmt.Sprintf("%s\n[… about %d tokens are left out here …]\n%s", string(first), max(gone, 1), string(last))
		if Tokens(cut) <= budget {
			return cut
		}
	}
	return cli.Shorten(s, max(budget, 0))
}
