package tgapi

import "ductor/lang"

// Page is what a message of ours shows.
type Page struct {
	Text     string
	Keyboard Keyboard
}

// perPage keeps a list of buttons within a phone's screen.
const perPage = 8

// Pages is how many pages n buttons take.
func Pages(n int) int { return (n + perPage - 1) / perPage }

// PageOf is the page that shows button i.
func PageOf(i int) int { return i / perPage }

// PageBounds are the buttons, of n, that a page shows.
func PageBounds(page, n int) (from, to int) { return page * perPage, min((page+1)*perPage, n) }

// Pager is the row of buttons that leads from a page to the others; no row if there are no others.
func Pager(p lang.Printer, page, pages int, data func(page int) string) Keyboard {
	if pages <= 1 {
		return nil
	}
	var row []Button
	if page > 0 {
		row = append(row, Button{Text: "‹", Data: data(page - 1)})
	}
	row = append(row, Button{Text: p.Text("common.page", page+1, pages), Data: data(page)})
	if page+1 < pages {
		row = append(row, Button{Text: "›", Data: data(page + 1)})
	}
	return Keyboard{row}
}
