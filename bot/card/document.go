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

// document is what one card says: segments in the order in which things happened. It is not safe for
// concurrent use.
type document struct {
	lang     lang.Printer
	segments []*segment
	answer   int // bytes of answer in the text segments
	tools    map[cli.ToolID]toolRef
	running  int // tools that have not ended, those of sub-agents left out
	wait     waitLine
	now      time.Time // when what is added happens, unless it says so itself
	limited  bool      // the rate limit was mentioned
	shows    shows
	cut      cutDocument
	scrub    *tgapi.Scrubber
	turn     turnFacts
}

// shows says what the owner wants to see.
type shows struct {
	thinking  bool // reasoning
	fileMarks bool // names of files in their place
	outputs   bool // of tools, folded
}

// turnFacts is what a card says about its turn besides the events.
type turnFacts struct {
	agent  cli.Agent
	then   string     // follows a failure
	mute   bool       // the agent does not say when its model is asked again
	bypass time.Time  // the end of the bypass that the turn runs in; zero for none
	place  string     // where the turn runs; empty where that is the only place that there is
	early  []earlyAsk // whose lines have not come
	where  func(orchestrator.ConversationID) string

	footer, noAnswer *segment // once the turn has ended: below the answer, and in its place; nil for none
}

type segmentKind int

const (
	textSegment segmentKind = iota
	toolSegment
	thinkingSegment
	noteSegment // one line
	planSegment
)

// segment is a stretch of the document. Only text is ever cut in two.
type segment struct {
	kind   segmentKind
	stream render.Stream // text: Markdown as the agent wrote it
	tool   *toolLine
	plan   *planList
	raw    []byte // thinking: its beginning
	note   render.Text
	vain   render.Text // replaces note if the turn fails
	diff   string      // the end of that of the file that note mentions
	shown  shownText
}

// maxThinking bounds what is shown of a stretch of reasoning, in UTF-16 units.
const maxThinking = 800

func newDocument(showThinking bool) *document {
	return &document{tools: make(map[cli.ToolID]toolRef), shows: shows{thinking: showThinking}}
}

// change says what an event did to a document.
type change struct {
	text   string // was added to the answer
	urgent bool   // something other than plain growth of the answer is to be shown
}

func (c change) news() news {
	if c.urgent {
		return urgentNews
	}
	return growth
}

// add folds an event in.
func (d *document) add(ev cli.Event) change {
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
	case cli.ToolEnded:
		return change{urgent: d.endTool(ev)}
	case cli.ApprovalAsked:
		waits := d.hold(ev.ID, ev.Started, ev.Tool)
		return change{urgent: d.setWait(waitAsked, "") || waits}
	case cli.QuestionAsked:
		waits := d.hold(ev.ID, ev.Started, ev.Tool)
		return change{urgent: d.setWait(waitAsked, "") || waits}
	case cli.ApprovalWithdrawn:
		return change{urgent: d.release(ev.ID)}
	case cli.FileChanged:
		return change{urgent: d.addFile(ev)}
	case cli.PlanChanged:
		return change{urgent: d.setPlan(ev.Steps)}
	case cli.Status:
		return change{urgent: d.takeStatus(ev)}
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

// retract takes bytes off the end of the answer, which may reach back over several segments.
func (d *document) retract(bytes int) {
	for i := len(d.segments) - 1; i >= 0 && bytes > 0; i-- {
		if s := d.segments[i]; s.kind == textSegment {
			n := min(bytes, s.stream.Len())
			s.stream.Retract(n)
			bytes, d.answer = bytes-n, d.answer-n
		}
	}
}

// text is the answer so far.
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

// settleText makes the answer equal to text: what the outcome says overrules what was streamed.
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

// rendered is the segment as the chat shows it.
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

// show renders a segment anew, without secrets.
func (d *document) show(s *segment) { s.shown.set(d.scrub.Text(s.rendered())) }

// separator stands between two segments that show something.
func separator(before, after segmentKind) string {
	compact := func(k segmentKind) bool { return k == toolSegment || k == noteSegment }
	if compact(before) && compact(after) {
		return "\n"
	}
	return "\n\n"
}
