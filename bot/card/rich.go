package card

import (
	"context"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// A card can be one rich message instead of several plain messages. Rich messages are a Telegram format with real
// tables and sections that users can unfold.

// Displays stores which chats want rich messages. It must be safe for concurrent use.
type Displays interface {
	// RichWouldHelp is called after a chat got plain messages with an answer that a rich message would show better. The
	// implementation may ask the users of the chat whether their Telegram apps can show rich messages.
	RichWouldHelp(ctx context.Context, in orchestrator.ConversationID) error
	// RichUnsupported is called if the Bot API server does not support rich messages.
	RichUnsupported(ctx context.Context, in orchestrator.ConversationID) error
}

// keptOutput is how much of the end of a tool's output or diff a card stores, in UTF-16 units.
const keptOutput = 2000

// blocks renders the document as the blocks of a rich message. It returns cut = true if the blocks omit a part of the
// answer.
func (d *document) blocks() (blocks []render.Block, cut bool) {
	follows := render.Block{
		Kind: render.Paragraph, Text: render.Styled(render.Italic, d.lang.Text("card.file-follows")),
	}
	left := false
	for i, s := range d.segments {
		if s.kind != textSegment {
			blocks = append(blocks, d.blocksOf(i)...)
			continue
		}
		some, cut := s.stream.Blocks(d.scrub.String, follows)
		blocks, left = append(blocks, some...), left || cut
	}
	blocks, cut = render.FitBlocks(d.scrub.Blocks(blocks), follows)
	return blocks, cut || left
}

// blocksOf renders segment i as blocks. The segment must not be a text segment.
func (d *document) blocksOf(i int) []render.Block {
	switch s := d.segments[i]; s.kind {
	case toolSegment:
		if s.tool.folded != nil {
			return []render.Block{render.Fold(s.tool.rendered(), d.hiddenFrom(i)...)}
		}
		if s.tool.hidden {
			return nil
		}
		return []render.Block{s.tool.block()}
	case planSegment:
		return s.plan.blocks()
	case thinkingSegment:
		return fold(render.Plain(d.lang.Text("card.reasoning")), render.Lay(s.reasoning())...)
	default:
		if s.diff != "" {
			return fold(s.note, code("diff", s.diff))
		}
		return render.Lay(s.note)
	}
}

// hiddenFrom returns the tools that the line of segment i summarizes: the segment's tool, and the hidden tools of the
// segments after it.
func (d *document) hiddenFrom(i int) []render.Block {
	first := *d.segments[i].tool
	first.folded, first.children = nil, 0
	out := []render.Block{first.block()}
	for _, s := range d.segments[i+1:] {
		if s.kind != toolSegment {
			break
		}
		if s.tool.hidden {
			shown := *s.tool
			shown.hidden = false
			out = append(out, shown.block())
		}
	}
	return out
}

// block returns the tool's line, with the tool's output and diff folded below it.
func (t *toolLine) block() render.Block {
	var inside []render.Block
	if t.output != "" {
		inside = append(inside, code("", t.output))
	}
	if t.diff != "" {
		inside = append(inside, code("diff", t.diff))
	}
	if len(inside) == 0 {
		return render.Block{Kind: render.Paragraph, Text: t.rendered()}
	}
	return render.Fold(t.rendered(), inside...)
}

func code(language, text string) render.Block {
	return render.Block{Kind: render.PreBlock, Language: language, Text: render.Plain(text)}
}

// fold returns a block that shows the summary. Users can unfold the block to see its content. fold returns nil if the
// content is empty.
func fold(summary render.Text, content ...render.Block) []render.Block {
	if len(content) == 0 {
		return nil
	}
	return []render.Block{render.Fold(summary, content...)}
}

func (p *planList) blocks() []render.Block {
	var items []render.Item
	for _, s := range p.steps {
		item, text := render.Item{Box: render.ToDo}, render.Plain(render.ShortLine(s.Text, stepMost))
		switch s.State {
		case cli.PlanDone:
			item.Box = render.Done
		case cli.PlanActive:
			text = render.Wrap(render.Bold, text)
		}
		if strings.TrimSpace(text.Text) != "" {
			item.Blocks = []render.Block{{Kind: render.Paragraph, Text: text}}
			items = append(items, item)
		}
	}
	if len(items) == 0 {
		return nil
	}
	title, list := render.Plain(p.title()), render.Block{Kind: render.List, Items: items}
	if p.folded {
		return fold(title, list)
	}
	return []render.Block{{Kind: render.Paragraph, Text: title}, list}
}

// keepEnd returns the end of a tool's output for rich messages, or "" if the card shows no outputs. It removes secrets
// before it cuts the output, because half a secret would not be recognized.
func (d *document) keepEnd(output string) string {
	if !d.shows.outputs {
		return ""
	}
	return strings.TrimSpace(render.LastLines(strings.TrimSpace(d.scrub.String(output)), keptOutput))
}

func (c *card) richLocked() bool { return isRich(c.turn) && c.messages.takesRich() }

func isRich(t orchestrator.Turn) bool { return t.Wants.Card.Display == orchestrator.DisplayRich }

// takesRich reports whether the card can be one rich message. This is not possible if Telegram rejected the rich
// message, or if the card already has several messages. It is also not possible if Telegram did not confirm the
// message: a second message then repeats the text, so the card has several messages.
func (s *messages) takesRich() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch len(s.parts) {
	case 0:
		return true
	case 1:
		return s.parts[0].Richness() == message.TakesRich && s.parts[0].State() != orchestrator.Unknown
	}
	return false
}

// reportTooOld tells Displays that Telegram rejected a rich message because the Bot API server does not support rich
// messages.
func (c *Cards) reportTooOld(ctx context.Context, s *messages) {
	s.mu.Lock()
	old := len(s.parts) > 0 && s.parts[0].Richness() == message.KnowsNoRich && !s.unsupportedReported
	s.unsupportedReported = s.unsupportedReported || old
	s.mu.Unlock()
	if !old || c.opts.Displays == nil {
		return
	}
	if err := c.opts.Displays.RichUnsupported(context.WithoutCancel(ctx), s.where()); err != nil {
		c.opts.Log.Warn("remember that a chat has no rich messages", "turn", s.turn.ID, "err", err)
	}
}

// richWouldHelp reports whether the card should ask the users of the chat about rich messages. This is the case if
// nobody has asked these users yet, and a rich message would show the answer better than plain texts.
func richWouldHelp(t orchestrator.Turn, texts []render.Text) bool {
	if t.Wants.Card.Display != orchestrator.DisplayAsk || t.Outcome.State == orchestrator.TurnAborted {
		return false
	}
	return len(texts) > 1 || strings.Contains(t.Outcome.Text, "|") && len(render.Tables(t.Outcome.Text)) > 0
}

func (c *Cards) askAboutRich(ctx context.Context, s *messages, content contents) {
	if !content.richWouldHelp || c.opts.Displays == nil {
		return
	}
	if err := c.opts.Displays.RichWouldHelp(ctx, s.where()); err != nil {
		c.opts.Log.Warn("ask whether a chat sees rich messages", "turn", s.turn.ID, "err", err)
	}
}

// richContent returns the content of a rich card. It is empty for a plain card.
func (d *document) richContent(t orchestrator.Turn) richContent {
	if !isRich(t) {
		return richContent{}
	}
	blocks, cut := d.blocks()
	return richContent{Blocks: blocks, Cut: cut || t.Outcome.Short != ""}
}

// richContent is the content of a rich card. Blocks is nil for a plain card.
type richContent struct {
	Blocks []render.Block `json:"blocks,omitempty"`
	Cut    bool           `json:"cut,omitempty"` // true if the blocks omit a part of the answer
}

// withTexts appends texts to the blocks, unless the card is plain.
func (r richContent) withTexts(texts ...render.Text) richContent {
	if r.Blocks == nil {
		return r
	}
	all := append([]render.Block(nil), r.Blocks...)
	for _, t := range texts {
		all = append(all, render.Lay(t)...)
	}
	blocks, cut := render.FitBlocks(all, render.Block{Kind: render.Divider})
	return richContent{blocks, r.Cut || cut}
}
