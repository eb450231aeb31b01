package tgapi

import (
	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// Page is what a message of ours shows.
type Page struct {
	Text     string
	Keyboard Keyboard
}

// Answer is what comes of a pressed button.
type Answer struct {
	Text      string                 // the short answer to the press
	Edit      Page                   // what the message shows now; without text it stays as it is
	Formatted render.Text            // instead of the text of Edit
	Messages  []orchestrator.Message // to be stored with the press
	Instead   *Button                // stands in the place of the pressed button from now on; nil: that stays
}

// Stale is the answer to a press that means nothing any more.
func Stale(p lang.Printer) Answer { return Answer{Text: p.Text("common.stale-button")} }

// perPage keeps a list of buttons within a phone's screen.
const perPage = 8

// Pages is how many pages n buttons take.
func Pages(n int) int { return (n + perPage - 1) / perPage }

// PageOf is the page that shows button i.
func PageOf(i int) int { return i / perPage }

// Paged gives the buttons, of n, that a page shows, and the row that leads from it to the others; no row if there are none. A page
// behind the last is the last.
func Paged(p lang.Printer, page, n int, data func(page int) string) (from, to int, pager Keyboard) {
	pages := Pages(n)
	page = max(min(page, pages-1), 0)
	from, to = page*perPage, min((page+1)*perPage, n)
	if pages <= 1 {
		return from, to, nil
	}
	var row []Button
	if page > 0 {
		row = append(row, Button{Text: "‹", Data: data(page - 1)})
	}
	row = append(row, Button{Text: p.Text("common.page", page+1, pages), Data: data(page)})
	if page+1 < pages {
		row = append(row, Button{Text: "›", Data: data(page + 1)})
	}
	return from, to, Keyboard{row}
}
