package telegram

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Limits for a rich message. Items of lists and rows of tables also count as blocks.
const (
	MaxRichText    = 32768 // UTF-16 code units in all texts together
	MaxRichBlocks  = 500
	MaxRichDepth   = 16 // nested levels of blocks and formatting
	MaxRichColumns = 20 // columns in a table
)

// Block is a block of a rich message. In a block of the kind details, Text is the summary.
type Block struct {
	// Kind is the name in the Bot API: paragraph, heading, pre, footer, divider, list, blockquote, table, details or
	// thinking.
	Kind     string     `json:"kind"`
	Text     string     `json:"text,omitempty"`
	Entities []Entity   `json:"entities,omitempty"`
	Size     int        `json:"size,omitempty"` // level of a heading, 1 to 6
	Language string     `json:"language,omitempty"`
	Blocks   []Block    `json:"blocks,omitempty"` // blocks inside a quotation or details
	Items    []ListItem `json:"items,omitempty"`
	Rows     [][]Cell   `json:"rows,omitempty"`
	Open     bool       `json:"open,omitempty"` // the details are open
}

// ListItem is an item of a list. Its Label is "1.", for example, or "•". An item with a checkbox has no label.
type ListItem struct {
	Label   string  `json:"label,omitempty"`
	Box     bool    `json:"box,omitempty"`
	Checked bool    `json:"checked,omitempty"`
	Blocks  []Block `json:"blocks"`
}

// Cell is a cell of a table.
type Cell struct {
	Text     string   `json:"text,omitempty"`
	Entities []Entity `json:"entities,omitempty"`
	Header   bool     `json:"header,omitempty"`
	Align    string   `json:"align"`
	Colspan  int      `json:"colspan,omitempty"`
	Rowspan  int      `json:"rowspan,omitempty"`
}

// rich is the content of a rich message, with the blocks as they were in the call.
type rich struct {
	blocks []Block
	raw    json.RawMessage
}

func (r *rich) equal(other *rich) bool {
	return r == other || r != nil && other != nil && string(r.raw) == string(other.raw)
}

// formatted returns the message with a plain text for searches. This text contains the texts of all blocks.
func (r *rich) formatted() formatted {
	var b strings.Builder
	plainBlocks(&b, r.blocks)
	return formatted{text: strings.TrimRight(b.String(), "\n"), rich: r}
}

func plainBlocks(b *strings.Builder, blocks []Block) {
	for _, block := range blocks {
		if block.Text != "" {
			b.WriteString(block.Text + "\n")
		}
		plainBlocks(b, block.Blocks)
		for _, item := range block.Items {
			b.WriteString(item.mark())
			plainBlocks(b, item.Blocks)
		}
		for _, row := range block.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, c.Text)
			}
			b.WriteString(strings.Join(cells, " | ") + "\n")
		}
	}
}

func (i ListItem) mark() string {
	switch {
	case i.Box && i.Checked:
		return "☑ "
	case i.Box:
		return "☐ "
	}
	return i.Label + " "
}

// richParam parses the rich message in a call. It returns nil if the call contains no rich message. Only a draft can
// contain a thinking block.
func (q *request) richParam() (*rich, *Error) {
	text, given := q.params["rich_message"]
	if !given {
		return nil, nil
	}
	var in struct {
		Blocks   []json.RawMessage `json:"blocks"`
		HTML     string            `json:"html"`
		Markdown string            `json:"markdown"`
	}
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, badRequest("can't parse rich message JSON object")
	}
	if in.HTML != "" || in.Markdown != "" {
		return nil, badRequest("can't parse rich message: this simulator knows no markup, send blocks")
	}
	r := richReader{}
	blocks := r.blocks(in.Blocks, 1)
	switch {
	case r.err != nil:
		return nil, r.err
	case r.units == 0:
		return nil, badRequest("rich message must be non-empty")
	case r.units > MaxRichText:
		return nil, badRequest("rich message text is too long")
	case r.count > MaxRichBlocks:
		return nil, badRequest("rich message has too many blocks")
	case r.deepest > MaxRichDepth:
		return nil, badRequest("rich message is nested too deep")
	}
	raw, _ := json.Marshal(in.Blocks) // never fails, because the blocks come from JSON
	return &rich{blocks: blocks, raw: raw}, nil
}

// richReader parses blocks and checks their limits.
type richReader struct {
	units, count, deepest int
	err                   *Error
}

func (r *richReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = badRequest("can't parse rich message: "+format, args...)
	}
}

func (r *richReader) at(depth int) bool {
	r.deepest = max(r.deepest, depth)
	return r.err == nil && depth <= 4*MaxRichDepth
}

func (r *richReader) blocks(in []json.RawMessage, depth int) []Block {
	var out []Block
	for _, raw := range in {
		if r.at(depth) {
			r.count++
			out = append(out, r.block(raw, depth))
		}
	}
	return out
}

type wireBlock struct {
	Type     string            `json:"type"`
	Text     json.RawMessage   `json:"text"`
	Summary  json.RawMessage   `json:"summary"`
	Size     int               `json:"size"`
	Language string            `json:"language"`
	Blocks   []json.RawMessage `json:"blocks"`
	Items    []wireItem        `json:"items"`
	Cells    [][]wireCell      `json:"cells"`
	Open     bool              `json:"is_open"`
}

type wireItem struct {
	Blocks  []json.RawMessage `json:"blocks"`
	Box     bool              `json:"has_checkbox"`
	Checked bool              `json:"is_checked"`
	Value   int               `json:"value"`
	Type    string            `json:"type"`
}

type wireCell struct {
	Text    json.RawMessage `json:"text"`
	Header  bool            `json:"is_header"`
	Colspan int             `json:"colspan"`
	Rowspan int             `json:"rowspan"`
	Align   string          `json:"align"`
	Valign  string          `json:"valign"`
}

func (r *richReader) block(raw json.RawMessage, depth int) Block {
	var in wireBlock
	if err := json.Unmarshal(raw, &in); err != nil {
		r.fail("a block is no JSON object of its type")
		return Block{}
	}
	b := Block{Kind: in.Type}
	switch in.Type {
	case "paragraph", "footer":
		b.Text, b.Entities = r.text(in.Text, depth)
	case "pre":
		b.Text, b.Entities = r.text(in.Text, depth)
		b.Language = in.Language
	case "heading":
		b.Text, b.Entities = r.text(in.Text, depth)
		if b.Size = in.Size; b.Size < 1 || b.Size > 6 {
			r.fail("a heading has the size %d", in.Size)
		}
	case "divider":
	case "blockquote":
		b.Blocks = r.inside(in.Blocks, depth)
	case "details":
		b.Text, b.Entities = r.text(in.Summary, depth)
		b.Blocks, b.Open = r.inside(in.Blocks, depth), in.Open
	case "list":
		b.Items = r.items(in.Items, depth)
	case "table":
		b.Rows = r.rows(in.Cells, depth)
	default:
		r.fail("unsupported block type %q", in.Type)
	}
	return b
}

func (r *richReader) inside(in []json.RawMessage, depth int) []Block {
	if len(in) == 0 {
		r.fail("a block has nothing inside")
	}
	return r.blocks(in, depth+1)
}

func (r *richReader) items(in []wireItem, depth int) []ListItem {
	if len(in) == 0 {
		r.fail("a list has no items")
	}
	var out []ListItem
	for i, item := range in {
		r.count++
		made := ListItem{Box: item.Box, Checked: item.Checked, Blocks: r.inside(item.Blocks, depth+1)}
		switch {
		case item.Checked && !item.Box:
			r.fail("an item without a checkbox is checked")
		case item.Box:
		case item.Type == "" && item.Value == 0:
			made.Label = "•"
		case item.Type == "" || slices.Contains([]string{"1", "a", "A", "i", "I"}, item.Type):
			made.Label = strconv.Itoa(max(item.Value, i+1)) + "."
		default:
			r.fail("a list item has the type %q", item.Type)
		}
		out = append(out, made)
	}
	return out
}

func (r *richReader) rows(in [][]wireCell, depth int) [][]Cell {
	if len(in) == 0 {
		r.fail("a table has no rows")
	}
	var out [][]Cell
	for _, row := range in {
		r.count++
		columns := 0
		var cells []Cell
		for _, c := range row {
			cell := Cell{Header: c.Header, Align: c.Align, Colspan: c.Colspan, Rowspan: c.Rowspan}
			if len(c.Text) > 0 {
				cell.Text, cell.Entities = r.text(c.Text, depth+1)
			}
			if !slices.Contains([]string{"left", "center", "right"}, c.Align) ||
				!slices.Contains([]string{"top", "middle", "bottom"}, c.Valign) {
				r.fail("a cell of a table stands at %q, %q", c.Align, c.Valign)
			}
			columns += max(c.Colspan, 1)
			cells = append(cells, cell)
		}
		if columns == 0 || columns > MaxRichColumns {
			r.fail("a table has %d columns", columns)
		}
		out = append(out, cells)
	}
	return out
}

// text parses a rich text: a string, a list of rich texts, or a formatted rich text.
func (r *richReader) text(raw json.RawMessage, depth int) (string, []Entity) {
	var b strings.Builder
	var entities []Entity
	r.gather(raw, depth, &b, &entities)
	out, err := normalise(b.String(), entities)
	if err != nil && r.err == nil {
		r.err = err
	}
	r.units += Units(out.text)
	return out.text, out.entities
}

// richFormats maps the formats of rich texts to types of entities.
var richFormats = map[string]string{
	"bold": "bold", "italic": "italic", "underline": "underline", "strikethrough": "strikethrough",
	"spoiler": "spoiler",
	"code":    "code", "url": "text_link",
}

func (r *richReader) gather(raw json.RawMessage, depth int, b *strings.Builder, entities *[]Entity) {
	if !r.at(depth) {
		return
	}
	var (
		plain string
		list  []json.RawMessage
		in    struct {
			Type string          `json:"type"`
			Text json.RawMessage `json:"text"`
			URL  string          `json:"url"`
		}
	)
	switch {
	case json.Unmarshal(raw, &plain) == nil && len(raw) > 0 && raw[0] == '"':
		b.WriteString(plain)
		return
	case json.Unmarshal(raw, &list) == nil && list != nil:
		for _, part := range list {
			r.gather(part, depth, b, entities)
		}
		return
	case json.Unmarshal(raw, &in) != nil || richFormats[in.Type] == "" || in.Type == "url" && in.URL == "":
		r.fail("unsupported text of type %q", in.Type)
		return
	}
	from := Units(b.String())
	r.gather(in.Text, depth+1, b, entities)
	*entities = append(*entities, Entity{Type: richFormats[in.Type], Offset: from, Length: Units(b.String()) - from,
		URL: in.URL})
}

// editRich makes a message show the content of a rich message.
func (s *Server) editRich(q *request, content *rich, err *Error) (any, *Error) {
	if err != nil {
		return nil, err
	}
	keyboard, err := q.keyboard()
	if err != nil {
		return nil, err
	}
	m, err := s.ownMessage(q)
	switch {
	case err != nil:
		return nil, err
	case m.Media != nil:
		return nil, badRequest("there is no text in the message to edit")
	}
	return s.applyEdit(m, content.formatted(), keyboard)
}

func (s *Server) sendRichMessage(q *request) (any, *Error) {
	content, err := q.richParam()
	if err != nil {
		return nil, err
	}
	if content == nil {
		return nil, badRequest("rich message is empty")
	}
	o, err := s.outgoing(q)
	if err != nil {
		return nil, err
	}
	o.base.show(content.formatted())
	return s.storeFromBot(o.chat, o.base).wire(), nil
}
