package card

import (
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// document is the text of one card: segments in the order of events. It is not safe for concurrent use.
type document struct {
	lang     lang.Printer
	segments []*segment
	answer   int // bytes of answer text in all segments
	tools    map[cli.ToolID]toolRef
	running  int // number of running tools, without those of sub-agents
	wait     waitLine
	now      time.Time // time of the next event, unless the event contains its own
	limited  bool      // the card mentions the rate limit
	shows    shows
	cut      cutDocument
	scrub    *tgapi.Scrubber
	turn     turnFacts
}

// shows contains the owner's display settings.
type shows struct {
	thinking  bool // reasoning
	fileMarks bool // file names instead of marks
	outputs   bool // folded outputs of tools
}

// turnFacts is information about a turn that does not come from events.
type turnFacts struct {
	agent  cli.Agent
	then   string            // line that is shown after a failure
	mute   bool              // the agent does not report when it repeats requests to its model
	bypass time.Time         // end of the turn's bypass; zero for none
	limits cli.AccountLimits // limits of the agent's plan that are almost reached
	place  string            // name of the place where the turn runs; empty if only one place exists
	early  []earlyAsk        // approvals that came before the lines of their tools
	where  func(orchestrator.ConversationID) string

	footer, noAnswer *segment // set at the end: below the answer, and in its place; may be nil
}

type segmentKind int

const (
	textSegment segmentKind = iota
	toolSegment
	thinkingSegment
	noteSegment // a single line
	planSegment
)

// segment is a part of the document. Only text segments may be split between messages.
type segment struct {
	kind         segmentKind
	stream       render.Stream // of a text: the agent's Markdown
	tool         *toolLine
	plan         *planList
	raw          []byte // of reasoning: its beginning
	note         render.Text
	noteIfFailed render.Text // replaces note if the turn fails
	diff         string      // end of the diff for the file in note
	shown        shownText
}

// maxThinking limits the shown length of one segment of reasoning, in UTF-16 units.
const maxThinking = 800

func newDocument(showThinking bool) *document {
	return &document{tools: make(map[cli.ToolID]toolRef), shows: shows{thinking: showThinking}}
}

// change describes how an event changed a document.
type change struct {
	text   string // text added to the answer
	urgent bool   // something other than the answer's text changed
}

func (c change) news() news {
	if c.urgent {
		return urgentNews
	}
	return growth
}

// applyEvent updates the document for an event.
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
		d.addNote(handedOverLine(d.lang, ev))
		return change{urgent: true}
	case cli.Substituted:
		d.turn.agent = ev.By
		d.push(substitutedLine(d.lang, ev))
		return change{urgent: true}
	case cli.LimitsReported:
		before := d.turn.limits.Text(d.lang, d.now)
		d.turn.limits = ev.AccountLimits.Near(d.now)
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

// retract removes bytes from the end of the answer. They may span several segments.
func (d *document) retract(bytes int) {
	for i := len(d.segments) - 1; i >= 0 && bytes > 0; i-- {
		if s := d.segments[i]; s.kind == textSegment {
			n := min(bytes, s.stream.Len())
			s.stream.Retract(n)
			bytes, d.answer = bytes-n, d.answer-n
		}
	}
}

// text returns the current answer.
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

// settleText sets the answer to text. The text of the outcome replaces the streamed text.
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

func (d *document) addNote(t render.Text) { d.push(&segment{kind: noteSegment, note: t}) }

// rendered returns the segment as the chat shows it.
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

// show renders a segment again, without secrets.
func (d *document) show(s *segment) { s.shown.set(d.scrub.Text(s.rendered())) }

// separator returns the separator between two visible segments.
func separator(before, after segmentKind) string {
	compact := func(k segmentKind) bool { return k == toolSegment || k == noteSegment }
	if compact(before) && compact(after) {
		return "\n"
	}
	return "\n\n"
}
