package tgapi

import (
	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// Page is the text and the buttons of a message.
type Page struct {
	Text     string
	Keyboard Keyboard
}

// Answer describes what the bot must show after a button press or command.
type Answer struct {
	Text      string                 // short text that Telegram shows after the press
	Edit      Page                   // new content of the button's message; no change if Edit.Text is empty
	Formatted render.Text            // content with formatting, in place of Edit.Text
	Messages  []orchestrator.Message // messages to store in the transaction that marks the update as handled
	Instead   *Button                // replaces the pressed button; &Button{}: remove the button; nil: keep the button
}

// Pressed is the message with a button that a user pressed.
type Pressed struct {
	Message int
	Buttons Keyboard // all buttons of the message
}

// Stale returns the answer to a button that no longer works.
func Stale(p lang.Printer) Answer { return Answer{Text: p.Text("common.stale-button")} }

// perPage is the number of buttons of a list on one page. A phone can show this number of buttons without scrolling.
const perPage = 8

// Pages returns the number of pages for a list of n buttons.
func Pages(n int) int { return (n + perPage - 1) / perPage }

// PageOf returns the index of the page with button i.
func PageOf(i int) int { return i / perPage }

// Paged returns which of n buttons are on a page. If there are several pages, it also returns a row of buttons that
// turn the pages. If the page does not exist, Paged uses the nearest page.
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

// LogInAction is the action in the data of all log-in buttons; see agent.Logins.
const LogInAction = "ln"

// LogInButton returns a button that starts to log in to an account of an agent.
func LogInButton(p lang.Printer, of orchestrator.LogInID) Button {
	env, _ := of.Env()
	return NewButton(p.Text("login.button", env.Account.NameOf(p, env.Agent)), LogInAction, string(of))
}
