// Package demo is the page of `ductor demo`: it shows the chats of the simulated Telegram as an app on a phone does, takes what
// their users write, press and send, and shows beside them what stays invisible in Telegram.
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

// The users of the demo, and the numbers of its chats.
const (
	You      telegram.UserID = 1
	Sam      telegram.UserID = 2 // may use the bot
	Visitor  telegram.UserID = 3 // may not
	TeamChat telegram.ChatID = -1000000000077
)

// Bot is the ductor that the chats talk to.
type Bot interface {
	// Restart ends ductor as an upgrade does, while agents continue, and starts it again.
	Restart(ctx context.Context) error
	// Processes lists the agents that run.
	Processes(ctx context.Context) ([]Process, error)
	// Budgets lists what may be sent to chats now.
	Budgets() []Budget
}

// Process is an agent that runs.
type Process struct {
	PID     int       `json:"pid"`
	Agent   string    `json:"agent"`
	Chat    string    `json:"chat"`
	State   string    `json:"state"`
	Started time.Time `json:"started"`
	Memory  int64     `json:"memory"` // bytes; 0 is unknown
}

// Budget is how many calls about a chat Telegram is expected to take, as ductor learned it.
type Budget struct {
	Name    string  `json:"name"`
	Tokens  float64 `json:"tokens"` // calls that may be made at once now
	Burst   int     `json:"burst"`
	Every   float64 `json:"every"`   // seconds between two calls in the long run
	Usual   float64 `json:"usual"`   // the same if no call was refused lately
	Silence float64 `json:"silence"` // seconds until the next call
}

// Options configure a Page. Telegram and Bot are required.
type Options struct {
	Telegram *telegram.Server
	Bot      Bot
	Tour     bool   // offer the tour: the agents are scripted ones
	Undo     bool   // the tour may change and undo files: the directory is a project of Seed
	Other    string // where another page of the demo is; "" if there is none
	Dir      string // that the agents work in
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

// Populate makes the users and chats of the demo.
func Populate(srv *telegram.Server) *telegram.Chat {
	you := srv.Private(You, "You")
	srv.Person(Sam, "Sam")
	srv.Person(Visitor, "Visitor")
	srv.Forum(TeamChat, "Team")
	return you
}

// New makes the page for a server that Populate filled.
func New(o Options) *Page {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Page{opts: o, you: o.Telegram.Private(You, "You"), record: newRecorder()}
	p.tour = newTour(p, stops(o.Undo))
	o.Telegram.OnCall(p.record.call)
	return p
}

// Files serves the page itself at each of the places, which end with a slash. It holds nothing of what happens in the demo.
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

// API answers what the page asks for. It must stand behind the guard of a web.Server.
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

// Close waits until nothing that the page began runs any more. The context of Serve must have ended.
func (p *Page) Close() {
	p.tour.stop()
	p.running.Wait()
}
