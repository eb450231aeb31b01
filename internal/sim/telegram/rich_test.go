package telegram_test

import (
	"slices"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

func para(text any) p { return p{"type": "paragraph", "text": text} }

func cells(texts ...string) []p {
	var row []p
	for _, text := range texts {
		row = append(row, p{"text": text, "align": "left", "valign": "top"})
	}
	return row
}

func blocks(list ...any) p { return p{"chat_id": 7, "rich_message": p{"blocks": list}} }

func nested(depth int, innermost p) p {
	for range depth - 1 {
		innermost = p{"type": "blockquote", "blocks": []p{innermost}}
	}
	return innermost
}

// TestRichRules tests the rich messages that the server rejects.
func TestRichRules(t *testing.T) {
	srv, ctx := house(t)
	list := func(items int) p {
		return p{"type": "list", "items": slices.Repeat([]p{{"blocks": []p{para("x")}}}, items)}
	}
	table := func(rows, columns int) p {
		return p{"type": "table", "cells": slices.Repeat([][]p{cells(slices.Repeat([]string{"x"}, columns)...)}, rows)}
	}
	rules := []struct {
		rule   string
		params p
		want   string // empty if accepted
	}{
		{"no content", p{"chat_id": 7}, "400 Bad Request: rich message is empty"},
		{"no JSON", p{"chat_id": 7, "rich_message": "{"}, "400 Bad Request: can't parse rich message JSON object"},
		{"no blocks", blocks(), "400 Bad Request: rich message must be non-empty"},
		{"blank blocks", blocks(para(" ")), "400 Bad Request: rich message must be non-empty"},
		{"a block that there is not", blocks(p{"type": "marquee"}),
			`400 Bad Request: can't parse rich message: unsupported block type "marquee"`},
		{"a thinking block outside a draft", blocks(p{"type": "thinking", "text": "x"}),
			`400 Bad Request: can't parse rich message: unsupported block type "thinking"`},
		{"a format that there is not", blocks(para(p{"type": "blink", "text": "x"})),
			`400 Bad Request: can't parse rich message: unsupported text of type "blink"`},
		{"a heading of no size", blocks(p{"type": "heading", "text": "x"}),
			"400 Bad Request: can't parse rich message: a heading has the size 0"},
		{"details of nothing", blocks(p{"type": "details", "summary": "x"}),
			"400 Bad Request: can't parse rich message: a block has nothing inside"},
		{"a list of nothing", blocks(p{"type": "list"}),
			"400 Bad Request: can't parse rich message: a list has no items"},
		{"a cell that stands nowhere", blocks(p{"type": "table", "cells": [][]p{{{"text": "x"}}}}),
			`400 Bad Request: can't parse rich message: a cell of a table stands at "", ""`},
		{"the longest", blocks(para(strings.Repeat("x", telegram.MaxRichText))), ""},
		{"too long", blocks(para(strings.Repeat("x", telegram.MaxRichText)), para("y")),
			"400 Bad Request: rich message text is too long"},
		{"the most blocks", blocks(list(249), para("x")), ""},
		{"too many blocks", blocks(list(249), para("x"), para("y")),
			"400 Bad Request: rich message has too many blocks"},
		{"too many rows", blocks(table(500, 1)), "400 Bad Request: rich message has too many blocks"},
		{"the most columns", blocks(table(1, 20)), ""},
		{"too many columns", blocks(table(1, 21)), "400 Bad Request: can't parse rich message: a table has 21 columns"},
		{"the deepest", blocks(nested(16, para("x"))), ""},
		{"too deep", blocks(nested(17, para("x"))), "400 Bad Request: rich message is nested too deep"},
		{"too deep by a format", blocks(nested(16, para(p{"type": "bold", "text": "x"}))),
			"400 Bad Request: rich message is nested too deep"},
	}
	for _, r := range rules {
		got := post(ctx, t, srv, "sendRichMessage", r.params)
		if got.OK != (r.want == "") || !got.OK && itoa(got.Code)+" "+got.Text != r.want {
			t.Errorf("%s: %d %s, want %q", r.rule, got.Code, got.Text, r.want)
		}
	}
}

func TestARichMessageShowsItsBlocksAndGrowsByEdits(t *testing.T) {
	srv, ctx := house(t)
	chat := srv.Private(7, "Ada")
	plan := p{"type": "list", "items": []p{{"blocks": []p{para("dig")}, "has_checkbox": true, "is_checked": true},
		{"blocks": []p{para("plant")}, "has_checkbox": true}}}
	table := p{"type": "table", "cells": [][]p{cells("tree", "age"), cells("oak", "300")}}
	details := p{"type": "details", "summary": []any{"ls ", p{"type": "code", "text": "-l"}},
		"blocks": []p{{"type": "pre", "text": "total 0", "language": "sh"}}}
	must(t, post(ctx, t, srv, "sendRichMessage",
		with(blocks(para("Working")), p{"reply_markup": keys("Stop", "stop")})))
	m, _ := chat.View().Last()
	edit := with(blocks(plan, table, details), p{"message_id": m.ID})
	must(t, post(ctx, t, srv, "editMessageText", edit))
	if got := post(ctx, t, srv, "editMessageText", edit); !strings.Contains(got.Text, "message is not modified") {
		t.Errorf("the same edit again: %+v", got)
	}
	m, _ = chat.View().Last()
	if want := "☑ dig\n☐ plant\ntree | age\noak | 300\nls -l\ntotal 0"; m.Text != want {
		t.Errorf("the text is %q, want %q", m.Text, want)
	}
	if len(m.Rich) != 3 || m.Rich[0].Items[0].Box != true || m.Rich[1].Rows[1][1].Text != "300" ||
		m.Rich[2].Blocks[0].Language != "sh" {
		t.Errorf("the blocks are %+v", m.Rich)
	}
	if e := m.Rich[2].Entities; len(e) != 1 || e[0].Type != "code" || e[0].Offset != 3 {
		t.Errorf("the format of the summary is %+v", e)
	}
	if len(m.Versions) != 2 || len(m.Versions[0].Rich) != 1 || len(m.Keyboard) != 0 {
		t.Errorf("it was shown as %+v", m.Versions)
	}
	must(t, post(ctx, t, srv, "editMessageText", p{"chat_id": 7, "message_id": m.ID, "text": "plain"}))
	if m, _ = chat.View().Last(); m.Rich != nil || m.Text != "plain" {
		t.Errorf("a text over a rich message: %+v", m)
	}
}

func TestAnOlderServerKnowsNoRichMessages(t *testing.T) {
	srv, ctx := start(t, telegram.Options{Without: []string{"sendRichMessage"}})
	srv.Private(7, "Ada")
	if got := post(ctx, t, srv, "sendRichMessage", blocks(para("x"))); got.Code != 404 {
		t.Errorf("sending: %+v", got)
	}
	must(t, post(ctx, t, srv, "sendMessage", p{"chat_id": 7, "text": "x"}))
	m, _ := srv.Private(7, "Ada").View().Last()
	if got := post(ctx, t, srv, "editMessageText",
		with(blocks(para("y")), p{"message_id": m.ID})); got.Text != "Bad Request: message text is empty" {
		t.Errorf("editing: %+v", got)
	}
}
