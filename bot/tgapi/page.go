package tgapi

import (
	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// Page is the content of a message of the bot.
type Page struct {
	Text     string
	Keyboard Keyboard
}

// Answer is a screen's answer to a press or command.
type Answer struct {
	Text      string                 // short answer to the press
	Edit      Page                   // new content of the message; if the text is empty, the message stays unchanged
	Formatted render.Text            // used instead of the text of Edit
	Messages  []orchestrator.Message // to be stored in the transaction that handles the press
	Instead   *Button                // replaces the pressed button; nil: no change
}

// Stale returns the answer to a press of an outdated button.
func Stale(p lang.Printer) Answer { return Answer{Text: p.Text("common.stale-button")} }

// perPage is the number of buttons of a list that a phone's screen shows.
const perPage = 8

// Pages returns the number of pages for n buttons.
func Pages(n int) int { return (n + perPage - 1) / perPage }

// PageOf returns the page that contains button i.
func PageOf(i int) int { return i / perPage }

// Paged returns the range of the n buttons that a page shows, and the row of buttons for other pages if there are
// any. A page after the last counts as the last.
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

// LogInAction is the action of the buttons of agent.Logins.
const LogInAction = "ln"

// LogInButton returns the button that shows how to log in an account of an agent.
func LogInButton(p lang.Printer, of orchestrator.LogInID) Button {
	env, _ := of.Env()
	return NewButton(p.Text("login.button", env.Account.NameOf(p, env.Agent)), LogInAction, string(of))
}
