package tables

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"log/slog"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/bot/picture"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

const answer = `Here they are:

| Package | What it does when it is asked to | Lines |
|:--|:--|--:|
| bot/card | shows a turn as one message that grows by edits, and its outcome when the turn has ended | 5834 |
| bot/outbox | budgets and the *order* of calls | 2061 |

and in a list:

- x

  | a | b |
  |---|---|
  | 1 | 2 |
`

func TestTablesOfAnAnswer(t *testing.T) {
	all := render.Tables(answer)
	if len(all) != 2 || all[0].Rows[2][1] != "budgets and the order of calls" || !all[0].Right[2] || all[0].Right[0] || all[1].Rows[1][1] != "2" {
		t.Errorf("the tables are %v", all)
	}
	if Row(lang.Printer{}, "t", "a | b") != nil || Row(lang.Printer{}, "t", "no table") != nil || len(Row(lang.Printer{}, "t", answer)) != 2 {
		t.Error("the buttons stand below answers without tables, or not below those with some")
	}
}

// A cell that is too wide continues on lines of its own, and no word is lost.
func TestCellsAreBrokenAtBlanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`([a-zé]{1,12} ?){0,12}`).Draw(t, "cell")
		width := rapid.IntRange(1, 20).Draw(t, "width")
		lines := broken(cell, width)
		for _, l := range lines {
			if picture.Width(l) > width {
				t.Fatalf("%q is wider than %d", l, width)
			}
		}
		join := func(s []string) string { return strings.ReplaceAll(strings.Join(s, ""), " ", "") }
		if join(lines) != join([]string{cell}) {
			t.Fatalf("%q became %q", cell, lines)
		}
	})
}

// A table of any shape becomes a picture, or is rejected as too large.
func TestAnyTableIsDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table render.Table
		for range rapid.IntRange(1, 300).Draw(t, "rows") {
			table.Rows = append(table.Rows, rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,30}`), 0, 12).Draw(t, "row"))
		}
		drawn, err := Draw(picture.Light, table)
		if err != nil && !errors.Is(err, picture.ErrTooLarge) {
			t.Fatal(err)
		}
		if err == nil {
			if _, err := png.DecodeConfig(bytes.NewReader(drawn)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TABLES_DIR=/tmp/x writes the pictures for inspection.
func TestPicturesToLookAt(t *testing.T) {
	dir := os.Getenv("TABLES_DIR")
	for name, theme := range map[string]picture.Theme{"light": picture.Light, "dark": picture.Dark} {
		drawn, err := Draw(theme, render.Tables(answer)[0])
		if err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			if err := os.WriteFile(dir+"/table-"+name+".png", drawn, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Cells, rows and columns beyond the bounds cost nothing: twice as many of them give the same picture with the same
// work.
func TestATableIsBoundedBeforeItIsLaidOut(t *testing.T) {
	table := func(n int) (t render.Table) {
		for range n / 100 {
			row := []string{strings.Repeat("x", n), strings.Repeat("word ", n/5)}
			for range n / 1000 {
				row = append(row, "c")
			}
			t.Rows = append(t.Rows, row)
		}
		return t
	}
	draw := func(t render.Table) func() { return func() { _, _ = Draw(picture.Light, t) } }
	once, twice := testing.AllocsPerRun(1, draw(table(40_000))), testing.AllocsPerRun(1, draw(table(80_000)))
	if twice > once*1.01 {
		t.Errorf("a table takes %.0f allocations, one of twice the size %.0f", once, twice)
	}
	for _, row := range bounded(table(40_000)).Rows {
		for _, cell := range row {
			if len([]rune(cell)) > cellMax+1 || len(row) > columns {
				t.Fatalf("a row of %d cells has one of %d bytes", len(row), len(cell))
			}
		}
	}
}

// answers has one answer, in conversation 7.
type answers struct{}

func (answers) AnswerOf(_ context.Context, in orchestrator.ConversationID, turn cli.TurnID) (string, error) {
	switch {
	case turn != "t1":
		return "", orchestrator.ErrNoTurn
	case in.Chat != 7:
		return "", orchestrator.ErrElsewhere
	}
	return answer, nil
}

// A press sends the pictures of an answer once in each theme, and nothing of another chat.
func TestPresses(t *testing.T) {
	journal, out := bottest.NewJournal(), bottest.NewOutbox()
	chat := bottest.NewChat(t)
	messages := message.New(out, chat, journal, nil, slog.New(slog.DiscardHandler))
	spool, err := message.OpenSpool(t.Context(), t.TempDir(), journal)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	s := &Screen{Answers: answers{}, Messages: messages, Spool: spool}
	press := func(chat int64, data string) (string, []orchestrator.Message, error) {
		a, err := s.Press(t.Context(), orchestrator.ConversationID{Chat: chat}, 5, data)
		return a.Text, a.Messages, err
	}
	if _, made, err := press(8, "l:t1"); !errors.Is(err, orchestrator.ErrElsewhere) || made != nil {
		t.Errorf("a press in another chat gives %v, %v", made, err)
	}
	for _, data := range []string{"", "x:t1", "l"} {
		if text, made, err := press(7, data); made != nil || err == nil && !strings.Contains(text, "no longer") {
			t.Errorf("a press with %q says %q, %v", data, text, err)
		}
	}
	for _, theme := range []string{"l", "d"} {
		_, made, err := press(7, theme+":t1")
		if err != nil || len(made) != 1 {
			t.Fatalf("the press gives %v, %v", made, err)
		}
		if err := journal.SaveMessage(t.Context(), made[0]); err != nil {
			t.Fatal(err)
		}
		if text, made, err := press(7, theme+":t1"); err != nil || made != nil || text != "The picture is in the chat already." {
			t.Errorf("the second press says %q, %v, %v", text, made, err)
		}
	}
}
