package card

import (
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// document is the content of one card, before this content is cut into messages. It is a list of segments such as text,
// tools and notes, in the order of the agent's events. It is not safe for concurrent use.
type document struct {
	lang     lang.Printer
	segments []*segment
	answer   int // total length of the answer's text in bytes
	tools    map[cli.ToolID]toolRef
	running  int // number of running tools, except tools of sub-agents
	wait     waitLine
	now      time.Time // time of the current event, unless the event contains a more precise time
	limited  bool      // the document already mentions that the rate limit was reached
	shows    shows
	cut      cutDocument
	scrub    *tgapi.Scrubber
	turn     turnFacts
}

type shows struct {
	thinking  bool // whether the card shows the agent's reasoning
	fileMarks bool // whether the card shows file names in place of render.FileMarks
	outputs   bool // whether the card shows the outputs of tools, folded
}

type turnFacts struct {
	agent  cli.Agent
	then   string            // line for users about what ductor does after the turn has failed
	mute   bool              // true if the agent does not report when it repeats a request to its model
	bypass time.Time         // end of bypass mode, in which the agent needs no approvals; zero: not bypass mode
	limits cli.AccountLimits // usage limits of the agent's account that are almost reached
	others []cli.Account     // accounts to which the user can switch before the limit is reached
	place  string            // names the sandbox in which the turn runs, if any; "" if no sandboxes are in use
	early  []earlyAsk        // requests for approval that arrived before their tool started
	where  func(orchestrator.ConversationID) string

	footer, noAnswer *segment // nil before the turn ends; noAnswer is a note that the answer is empty
}

type segmentKind int

const (
	textSegment segmentKind = iota
	toolSegment
	thinkingSegment
	noteSegment // a line about the turn, such as its title or footer
	planSegment
)

// segment is a part of a document. Only text segments may be split between two messages.
type segment struct {
	kind         segmentKind
	stream       render.Stream // Markdown of the agent; only for textSegment
	tool         *toolLine
	plan         *planList
	raw          []byte // beginning of the agent's reasoning; only for thinkingSegment
	note         render.Text
	noteIfFailed render.Text // shown instead of note if the turn fails
	own          bool        // ductor made the note, so the agent's output does not contain it
	diff         string      // end of the file's diff, if the note is about a changed file
	shown        shownText
}

// maxThinking is the maximum length of a segment of reasoning, in UTF-16 units.
const maxThinking = 800

func newDocument(showThinking bool) *document {
	return &document{tools: make(map[cli.ToolID]toolRef), shows: shows{thinking: showThinking}}
}

type change struct {
	text   string
	urgent bool // the change is more than additional text, so the card should show it soon
}

func (c change) news() news {
	if c.urgent {
		return urgentNews
	}
	return growth
}

func (d *document) applyEvent(ev cli.Event) change {
	switch ev := ev.(type) {
	case cli.SessionStarted:
		d.turn.mute = ev.Mute
		return change{urgent: d.opened()}
	case cli.TextDelta:
		d.appendText(ev.Text)
		return change{text: ev.Text, urgent: d.setWait(waitQuiet, "")}
	case cli.TextRetracted:
		d.retract(ev.Bytes)
		return change{urgent: true}
	case cli.ThinkingDelta:
		return change{urgent: d.addThinking(ev.Text)}
	case cli.ToolStarted:
		d.setWait(waitQuiet, "")
		d.startTool(ev)
		return change{urgent: true}
	case cli.ToolChanged:
		return change{urgent: d.changeTool(ev)}
	case cli.ToolEnded:
		return change{urgent: d.endTool(ev)}
	case cli.ApprovalAsked:
		waits := d.holdTool(ev.ID, ev.Started, ev.Tool)
		return change{urgent: d.setWait(waitAsked, "") || waits}
	case cli.QuestionAsked:
		waits := d.holdTool(ev.ID, ev.Started, ev.Tool)
		return change{urgent: d.setWait(waitAsked, "") || waits}
	case cli.ApprovalWithdrawn:
		return change{urgent: d.releaseTool(ev.ID)}
	case cli.FileChanged:
		return change{urgent: d.addFile(ev)}
	case cli.PlanChanged:
		return change{urgent: d.setPlan(ev.Steps)}
	case cli.Status:
		return change{urgent: d.applyStatus(ev)}
	case cli.CompactBoundary:
		d.setWait(waitQuiet, "")
		d.addNote(compactLine(d.lang, ev))
		return change{urgent: true}
	case cli.HandedOver:
		return change{urgent: d.addOwn(&segment{kind: noteSegment, note: handedOverLine(d.lang, ev)})}
	case cli.Substituted:
		d.turn.agent = ev.By
		return change{urgent: d.addOwn(substitutedLine(d.lang, ev))}
	case cli.LimitsReported:
		before := d.turn.limits.Text(d.lang, d.now)
		d.turn.limits, d.turn.others = ev.AccountLimits.Near(d.now), ev.Others
		return change{urgent: d.turn.limits.Text(d.lang, d.now) != before}
	case cli.RateLimited:
		if d.limited {
			return change{}
		}
		d.limited = true
		d.addNote(limitLine(d.lang, ev))
		return change{urgent: true}
	}
	return change{}
}

func (d *document) last() *segment {
	if len(d.segments) == 0 {
		return nil
	}
	return d.segments[len(d.segments)-1]
}

func (d *document) push(s *segment) *segment {
	d.segments = append(d.segments, s)
	return s
}

func (d *document) appendText(text string) {
	s := d.last()
	if s == nil || s.kind != textSegment {
		s = d.push(&segment{kind: textSegment, stream: render.Stream{FileMarks: d.shows.fileMarks}})
	}
	s.stream.Append(text)
	d.answer += len(text)
}

// retract removes the given number of bytes from the end of the answer. These bytes may belong to several text
// segments.
func (d *document) retract(bytes int) {
	for i := len(d.segments) - 1; i >= 0 && bytes > 0; i-- {
		if s := d.segments[i]; s.kind == textSegment {
			n := min(bytes, s.stream.Len())
			s.stream.Retract(n)
			bytes, d.answer = bytes-n, d.answer-n
		}
	}
}

// text returns the Markdown of the answer so far.
func (d *document) text() string {
	var b strings.Builder
	b.Grow(d.answer)
	for _, s := range d.segments {
		if s.kind == textSegment {
			b.WriteString(s.stream.Source())
		}
	}
	return b.String()
}

// settleText replaces the streamed answer by its final text. It changes only the part after the first difference.
func (d *document) settleText(text string) {
	have := d.text()
	if have == text {
		return
	}
	same := samePrefix(have, text)
	d.retract(len(have) - same)
	if same < len(text) {
		d.appendText(text[same:])
	}
}

func (d *document) addThinking(text string) bool {
	if !d.shows.thinking {
		return false
	}
	s := d.last()
	if s == nil || s.kind != thinkingSegment {
		s = d.push(&segment{kind: thinkingSegment})
	}
	if len(s.raw) >= 4*maxThinking {
		return false
	}
	s.raw = append(s.raw, text...)
	return true
}

// addOwn adds a note of ductor. It returns false if the notes at the start of the document already contain this note,
// for example because it was restored after a restart.
func (d *document) addOwn(s *segment) bool {
	if slices.ContainsFunc(d.lead(), func(l *segment) bool { return l.note.Text == s.note.Text }) {
		return false
	}
	s.own = true
	d.push(s)
	return true
}

// lead returns ductor's own notes at the start of the document. The database stores these notes, because the next
// process cannot restore them from the agent's events.
func (d *document) lead() []*segment {
	n := slices.IndexFunc(d.segments, func(s *segment) bool { return !s.own })
	if n < 0 {
		n = len(d.segments)
	}
	return d.segments[:n]
}

func (d *document) addNote(t render.Text) { d.push(&segment{kind: noteSegment, note: t}) }

func (s *segment) rendered() render.Text {
	switch s.kind {
	case textSegment:
		return s.stream.Text()
	case toolSegment:
		return s.tool.rendered()
	case planSegment:
		return s.plan.rendered()
	case thinkingSegment:
		return render.Styled(render.Expandable, render.Shorten(s.reasoning(), maxThinking).Text)
	}
	return s.note
}

func (s *segment) reasoning() render.Text {
	return render.Markdown(strings.TrimSpace(strings.ToValidUTF8(string(s.raw), "")))
}

// show renders a segment, removes secrets from the rendering, and stores the rendering in s.shown.
func (d *document) show(s *segment) { s.shown.set(d.scrub.Text(s.rendered())) }

func separator(before, after segmentKind) string {
	compact := func(k segmentKind) bool { return k == toolSegment || k == noteSegment }
	if compact(before) && compact(after) {
		return "\n"
	}
	return "\n\n"
}
