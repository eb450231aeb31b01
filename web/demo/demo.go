// Package demo is the web page of `ductor demo`. It shows the chats of the simulated Telegram like an app on a phone,
// and lets the user act in them. Beside the chats, the page shows internals that Telegram would hide, such as calls of
// the bot.
package demo

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/web"
)

//go:embed page
var page embed.FS

// Users and chats of the demo.
const (
	You      telegram.UserID = 1
	Sam      telegram.UserID = 2 // may use the bot, as the user You may
	Visitor  telegram.UserID = 3 // must not use the bot
	TeamChat telegram.ChatID = -1000000000077
)

// Bot is the running ductor. The users of the demo write to it in their chats.
type Bot interface {
	// Restart restarts ductor in the same way as an upgrade. Agents keep running.
	Restart(ctx context.Context) error
	// Processes lists the running processes of agents.
	Processes(ctx context.Context) ([]Process, error)
	// Budgets lists how many calls ductor may make for each chat.
	Budgets() []Budget
}

// Process is a running process of an agent.
type Process struct {
	PID     int       `json:"pid"`
	Agent   string    `json:"agent"`
	Chat    string    `json:"chat"`
	State   string    `json:"state"`
	Started time.Time `json:"started"`
	Memory  int64     `json:"memory"` // memory in bytes; 0 if unknown
}

// Budget describes how many calls to Telegram ductor may make for a chat. ductor estimates this limit.
type Budget struct {
	Name    string  `json:"name"`
	Tokens  float64 `json:"tokens"` // number of calls that ductor may make now
	Burst   int     `json:"burst"`
	Every   float64 `json:"every"`   // average seconds between two calls; ductor raises it if Telegram rejects a call
	Usual   float64 `json:"usual"`   // value of Every before Telegram rejected a call
	Silence float64 `json:"silence"` // seconds until ductor may make the next call
}

// Options configures a Page. Telegram and Bot are required.
type Options struct {
	Telegram *telegram.Server
	Bot      Bot
	Tour     bool   // true to show the tour; the agents must be scripted
	Undo     bool   // true if the tour shows how to undo changes of files; requires a project that Seed created
	Other    string // address of the other page of the demo; "" for none
	Dir      string // working directory of the agents
	Version  string
	Log      *slog.Logger
}

// Page serves the demo.
type Page struct {
	opts    Options
	you     *telegram.Chat
	record  *recorder
	tour    *tour
	running sync.WaitGroup // running steps of the tour
}

// Populate creates the users and chats of the demo.
func Populate(srv *telegram.Server) *telegram.Chat {
	you := srv.Private(You, "You")
	srv.Person(Sam, "Sam")
	srv.Person(Visitor, "Visitor")
	srv.Forum(TeamChat, "Team")
	return you
}

// New returns the page of a simulated Telegram. Populate must have created the chats.
func New(o Options) *Page {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Page{opts: o, you: o.Telegram.Private(You, "You"), record: newRecorder()}
	p.tour = newTour(p, stops(o.Undo))
	o.Telegram.OnCall(p.record.call)
	return p
}

// Files serves the page's HTML, CSS and JavaScript below each of the given paths, which must end with a slash. API
// serves the data.
func Files(places ...string) http.Handler {
	own, err := fs.Sub(page, "page")
	if err != nil {
		panic("demo: the page is not embedded: " + err.Error())
	}
	mux := http.NewServeMux()
	for _, place := range places {
		mux.Handle(place, http.StripPrefix(strings.TrimSuffix(place, "/"), web.Pages(own)))
	}
	return mux
}

// API handles the requests of the page. A web.Server must check them first.
func (p *Page) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/stream", p.serveStream)
	mux.HandleFunc("GET /api/file", p.serveFile)
	mux.HandleFunc("POST /api/upload", p.serveUpload)
	for name, act := range p.actions() {
		mux.Handle("POST /api/"+name, p.serveAction(act))
	}
	return mux
}

// Close waits for goroutines that the page has started. Call it when the context of web.Server.Serve is done.
func (p *Page) Close() {
	p.tour.stop()
	p.running.Wait()
}
