// Package demo is the web page of `ductor demo`. It shows the chats of the simulated Telegram like a phone app and
// performs the actions of their users. Beside the chats, it shows internals that Telegram would hide.
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
	Sam      telegram.UserID = 2 // may use the bot
	Visitor  telegram.UserID = 3 // must not use the bot
	TeamChat telegram.ChatID = -1000000000077
)

// Bot is the ductor behind the chats.
type Bot interface {
	// Restart restarts ductor as an upgrade does. Running agents continue.
	Restart(ctx context.Context) error
	// Processes lists the running agents.
	Processes(ctx context.Context) ([]Process, error)
	// Budgets lists the current rate limits of chats.
	Budgets() []Budget
}

// Process is a running agent.
type Process struct {
	PID     int       `json:"pid"`
	Agent   string    `json:"agent"`
	Chat    string    `json:"chat"`
	State   string    `json:"state"`
	Started time.Time `json:"started"`
	Memory  int64     `json:"memory"` // bytes; 0 if unknown
}

// Budget is ductor's estimate of Telegram's rate limit for a chat.
type Budget struct {
	Name    string  `json:"name"`
	Tokens  float64 `json:"tokens"` // calls that ductor may make immediately
	Burst   int     `json:"burst"`
	Every   float64 `json:"every"`   // average seconds between calls
	Usual   float64 `json:"usual"`   // value of Every when Telegram has not rejected a call recently
	Silence float64 `json:"silence"` // seconds until the next call
}

// Options configures a Page. Telegram and Bot are required.
type Options struct {
	Telegram *telegram.Server
	Bot      Bot
	Tour     bool   // offer the tour; requires scripted agents
	Undo     bool   // the tour may change files and undo the changes; requires a project from Seed
	Other    string // address of another page of the demo; "" for none
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
	running sync.WaitGroup // stops of the tour that are being played
}

// Populate creates the users and chats of the demo.
func Populate(srv *telegram.Server) *telegram.Chat {
	you := srv.Private(You, "You")
	srv.Person(Sam, "Sam")
	srv.Person(Visitor, "Visitor")
	srv.Forum(TeamChat, "Team")
	return you
}

// New returns the page for a server that Populate has filled.
func New(o Options) *Page {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Page{opts: o, you: o.Telegram.Private(You, "You"), record: newRecorder()}
	p.tour = newTour(p, stops(o.Undo))
	o.Telegram.OnCall(p.record.call)
	return p
}

// Files serves the files of the page below each of the paths, which end with a slash. They contain no data of the demo.
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

// API serves the page's requests. It must be behind the guard of a web.Server.
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

// Close waits for the page's goroutines. Call it after the context of web.Server.Serve has ended.
func (p *Page) Close() {
	p.tour.stop()
	p.running.Wait()
}
