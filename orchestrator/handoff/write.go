package handoff

import (
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// The frame around what is told: an agent must not take it for a request.
const (
	head = "[What was said in this session that you do not know yet. It is background, not a request.]\n"
	tail = "[End of what was said before. The request:]\n\n"

	leftOut = "[%d turns before are left out.]\n"
)

// worthTelling is how many tokens must be left for a turn that does not fit whole. Less says nothing of it.
const worthTelling = 200

// Repeated stands for the prompt of a turn whose prompt is asked once more.
const Repeated = "[the request below]"

// Told is what an agent is told.
type Told struct {
	Text    string // ends where the prompt begins; empty if there is nothing to tell
	Turns   int    // how many turns it tells, shortened ones included
	LeftOut int    // how many turns, or parts of them, did not fit
	// Shortened is set if one of Turns is told in part.
	Shortened bool
	Tokens    int // of Text, as Tokens counts them
}

// Write tells turns, which are in order, in at most budget tokens: the newest first in line for the room, and both ends of one
// that does not fit. summary tells what was before turns; empty for nothing.
func Write(turns []orchestrator.Turn, summary string, budget int) Told {
	turns = slices.DeleteFunc(slices.Clone(turns), func(t orchestrator.Turn) bool { return t.Prompt.Text == "" && t.Outcome.Text == "" })
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
		text := tell(t)
		n := Tokens(text) + 1 // each estimate is rounded
		if n > room {
			if len(newestFirst) > 0 && room < worthTelling {
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

// Whole is how many turns were left out whole.
func (t Told) Whole() int {
	if t.Shortened {
		return t.LeftOut - 1
	}
	return t.LeftOut
}

// tell writes a turn whole. Attachments are named: the agent may read them where they lie.
func tell(t orchestrator.Turn) string { return turnText(t, question(t), t.Outcome.Text) }

// shorten writes a turn with the middle of its answer left out, and that of its prompt if that takes more than half.
func shorten(t orchestrator.Turn, budget int) string {
	if text := tell(t); Tokens(text) <= budget {
		return text
	}
	room := budget - Tokens(turnText(t, "", "-"))
	asked := Middle(question(t), max(room/2, room-Tokens(t.Outcome.Text)))
	return turnText(t, asked, Middle(t.Outcome.Text, room-Tokens(asked)))
}

func turnText(t orchestrator.Turn, asked, answered string) string {
	text := "User: " + asked + "\n"
	if answered != "" {
		text += fmt.Sprintf("Assistant (%s): %s\n", t.Agent, answered)
	}
	switch t.State {
	case orchestrator.TurnAborted:
		text += "[The user stopped this turn before its end.]\n"
	case orchestrator.TurnInterrupted, orchestrator.TurnFailed:
		text += "[This turn failed before its end.]\n"
	}
	return text
}

// question is what the user wrote, with the names of the files that came along, but for pictures of a turn that was refused: an agent that
// reads one of them may be refused as well.
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

// WithoutPictures is a prompt with a note in place of its pictures.
func WithoutPictures(p orchestrator.Prompt) orchestrator.Prompt {
	rest := slices.DeleteFunc(slices.Clone(p.Attachments), func(a orchestrator.Attachment) bool { return a.Image })
	if len(rest) < len(p.Attachments) {
		p.Text = strings.TrimSpace(p.Text + "\n[A picture came along. The model refused it, so it is left out.]")
	}
	p.Attachments = rest
	return p
}

// Attached names a file as agents read it.
func Attached(a orchestrator.Attachment) string {
	return "\n" + a.String()
}

// Middle keeps both ends of a text that has more than budget tokens, and says between them how much is left out.
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
