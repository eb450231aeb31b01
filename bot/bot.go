package bot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"ductor/bot/approval"
	"ductor/bot/card"
	"ductor/bot/checks"
	"ductor/bot/display"
	"ductor/bot/edits"
	"ductor/bot/files"
	"ductor/bot/menu"
	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/project"
	"ductor/bot/silence"
	"ductor/bot/tables"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/bot/usage"
	"ductor/bot/users"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// Options configures a Bot. Token, Journal and UploadsDir are required. If Allow is empty, the bot ignores all users.
type Options struct {
	Token     string
	APIBase   string            // default: https://api.telegram.org
	APIFiles  string            // directory with the received files of a local Bot API server; empty: no such server
	Transport http.RoundTripper // default: tgapi.NewTransport("")
	Scrub     *tgapi.Scrubber   // removes secrets from texts and logs; default: only the bot token

	Journal    orchestrator.Journal
	UploadsDir string // directory for files that users send; created with mode 0700
	SpoolDir   string // directory for files that wait to be sent; created with mode 0700
	MaxUpload  int64  // maximum size of a file that a user sends, in bytes; default: the limit of the Bot API

	Allow updates.Allow
	Users users.Directory       // manages users for /pair and /users; nil: the configuration defines all users
	Owner orchestrator.PersonID // user to notify of problems with polling; 0: none

	// Lost is the time up to which the database may have lost data, or zero. The bot does not handle older messages,
	// because ductor may have handled them already.
	Lost        time.Time
	Polled      func(err error, wait time.Duration) // called after each poll; see updates.PollerOptions
	AlbumWindow time.Duration                       // wait for other files of an album; default: 1.5 s; < 0: no wait
	PasteWindow time.Duration                       // wait for other parts of a text; default: 300 ms; < 0: no wait

	Aliases func() map[string]naming.Alias // returns short names of models for /model; nil: none
	Reload  Reload                         // for /reload; nil: not available
	Offers  menu.Offers                    // new agents that /model can offer

	Jobs     orchestrator.Jobs        // for /cron; nil: not available
	Sessions orchestrator.Sessions    // for /sessions
	Projects orchestrator.Projects    // for /project
	Steps    orchestrator.Steps       // for the buttons that list the steps of a turn
	Consults orchestrator.Consults    // for /consult and /group; nil: not available; may be set later by Attach
	Group    func() []string          // returns the models that /group asks; nil or empty: ductor chooses models
	Files    orchestrator.Files       // reads and writes files of projects; nil: not available
	Changes  orchestrator.FileChanges // for the buttons of changed files, /diff and /checkpoint; nil: not available
	Usage    usage.Store              // for /usage and /audit
	// Checks runs the checks for /doctor; nil: not available.
	Checks func(context.Context) checks.Report

	// SetAway handles "/terminal on" and "/terminal off"; see sessions.Options. If it is nil, agents in terminals never
	// ask for approvals in the chat.
	SetAway func(by orchestrator.Press, choice string) error

	FileMarks bool // agents can send a file by naming it in an answer; see render.FileMark

	Listener updates.Listener // converts speech to text; nil: the bot explains how to install a converter
	Confirm  bool             // users must confirm the text of a voice message before the agent gets it

	// Noticed is called with the text of every message before it is sent, except cards and approvals. If sending fails,
	// Noticed may be called again with the same key. It must not block. It may be nil.
	Noticed func(in orchestrator.ConversationID, key, text string)

	Lang  *lang.Choices           // languages of the chats
	Quiet func(at time.Time) bool // reports whether reminders must make no sound at that time; nil: never

	Outbox outbox.Options
	Cards  card.Options // settings from the configuration; New sets all other fields

	Silence func() time.Duration // how long an agent may be silent before users get a notice; nil or 0: no notices

	Log *slog.Logger // nil: do not log
}

// Bot is the Telegram bot of ductor. Run handles the messages of users; Chat shows them the answers of ductor.
type Bot struct {
	opts     Options
	log      *slog.Logger
	api      *tgapi.API
	client   *tgapi.Client
	outbox   *outbox.Outbox
	messages *message.Messages
	chat     *Chat
	uploads  *updates.Uploads
	spool    *message.Spool
	files    *files.Sender // nil: no files are sent

	endMessages context.CancelFunc
	running     sync.WaitGroup
}

// PollTimeout is how long Telegram may hold a getUpdates request. It must be whole seconds.
const PollTimeout = 50 * time.Second

// stopPatience is how long Run waits for running handlers after its context is done.
const stopPatience = 10 * time.Second

// New returns a Bot. It makes no requests to Telegram. The orchestrator may use Chat at once, but the Bot sends notices
// only after Run has started. The caller must call Close.
func New(ctx context.Context, o Options) (*Bot, error) {
	if o.Journal == nil || o.UploadsDir == "" {
		return nil, errors.New("a bot needs a journal and an uploads directory")
	}
	o = o.withDefaults()
	if o.Transport == nil {
		t, err := tgapi.NewTransport("")
		if err != nil {
			return nil, err
		}
		o.Transport = t
	}
	client, err := tgapi.NewClient(tgapi.ClientOptions{
		Token: o.Token, APIBase: o.APIBase, Transport: o.Transport, Scrub: o.Scrub,
	})
	if err != nil {
		return nil, err
	}
	b := &Bot{
		opts: o, log: o.Log, client: client,
		api: tgapi.NewAPI(o.APIBase, o.Token, o.Transport),
	}
	b.api.KeepsFiles(o.APIFiles)
	if b.uploads, err = updates.OpenUploads(o.UploadsDir, o.MaxUpload, b.api); err != nil {
		return nil, err
	}
	o.Outbox.Store, o.Outbox.Trouble = o.Journal, tgapi.TroubleOf
	b.outbox = outbox.New(o.Outbox)
	if err := b.outbox.Restore(ctx); err != nil {
		return nil, err
	}
	b.messages = message.New(b.outbox, client, o.Journal, o.Lang, b.log)
	b.messages.Noticed = o.Noticed
	if err := b.openFiles(ctx); err != nil {
		return nil, err
	}
	lost := &lostAnswers{
		messages: b.messages, journal: o.Journal, api: b.api, owner: o.Owner, lang: o.Lang, log: b.log,
		back: make(chan int64, 64),
	}
	b.messages.WhenReached(lost.reached)
	icons, err := project.NewIcons(ctx, project.IconOptions{
		Store: o.Journal, Client: client, All: b.api.TopicIcons, Outbox: b.outbox, Log: b.log,
	})
	if err != nil {
		return nil, err
	}
	asks := display.New(b.messages, o.Lang)
	cards := b.cardOptions(ctx, lost, asks)
	b.chat = &Chat{typing: newTyping(), lost: lost, names: cards.Names, cards: card.New(cards), files: b.files,
		queue:    newQueueCards(b.messages, o.Lang, edits.NewPrompts(o.Journal, b.messages, o.Lang, b.log)),
		messages: b.messages, lang: o.Lang, display: asks, icons: icons,
		approvals: approval.New(approval.Options{
			Messages: b.messages, Outbox: b.outbox, Pins: client, Quiet: o.Quiet, Journal: o.Journal, Lang: o.Lang,
			Names: cards.Names, Log: b.log, Now: time.Now,
		}),
		silence: silence.New(silence.Options{
			Messages: b.messages, After: o.Silence, Quiet: o.Quiet, Lang: o.Lang,
			Stop: func(p lang.Printer, turn cli.TurnID) tgapi.Button { return turnButtons{p}.Stop(turn) },
		})}
	return b, nil
}

func (b *Bot) cardOptions(ctx context.Context, lost *lostAnswers, asks *display.Screen) card.Options {
	o := b.opts.Cards
	o.FileMarks = b.files != nil && b.opts.FileMarks
	o.Messages, o.Outbox, o.Journal, o.Lost = b.messages, b.outbox, b.opts.Journal, lost.add
	o.Typing, o.Draft, o.Scrub = b.client.Typing, b.client.Draft, b.client.Scrubber()
	o.Buttons = func(p lang.Printer) card.Buttons { return turnButtons{p} }
	o.Displays, o.Names, o.Lang, o.Log = asks, &tgapi.ChatNames{}, b.opts.Lang, b.log
	if err := users.LearnNames(ctx, b.opts.Users, o.Names); err != nil {
		b.log.Warn("load the names of users", "err", err)
	}
	return o
}

// openFiles opens the spool and creates the sender for files of projects. It does nothing if Options.Files is nil.
func (b *Bot) openFiles(ctx context.Context) (err error) {
	o := b.opts
	if o.Files == nil {
		return nil
	}
	if b.spool, err = message.OpenSpool(ctx, o.SpoolDir, o.Journal); err != nil {
		return err
	}
	b.files = files.NewSender(files.Options{
		Files: o.Files, Messages: b.messages.WithSpool(b.spool), Spool: b.spool, Store: o.Journal, Marks: o.FileMarks,
		Lang: o.Lang, Log: b.log,
	})
	return nil
}

func (o Options) withDefaults() Options {
	if o.APIBase == "" {
		o.APIBase = "https://api.telegram.org"
	}
	if o.Scrub == nil {
		o.Scrub = tgapi.NewScrubber(o.Token)
	}
	o.AlbumWindow = cmp.Or(o.AlbumWindow, 1500*time.Millisecond)
	o.PasteWindow = cmp.Or(o.PasteWindow, 300*time.Millisecond)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = slog.New(o.Scrub.Handler(o.Log.Handler()))
	if o.Outbox.Log == nil {
		o.Outbox.Log = o.Log
	}
	if o.Aliases == nil {
		o.Aliases = func() map[string]naming.Alias { return nil }
	}
	if o.Group == nil {
		o.Group = func() []string { return nil }
	}
	if o.Silence == nil {
		o.Silence = func() time.Duration { return 0 }
	}
	return o
}

// Attach sets Options.Consults. It exists because the implementation of Consults itself needs a Bot. Call Attach before
// Run.
func (b *Bot) Attach(consults orchestrator.Consults) { b.opts.Consults = consults }

// PruneUploads deletes files that users sent before the given time, and returns their number.
func (b *Bot) PruneUploads(before time.Time) (int, error) { return b.uploads.Prune(before) }

// Chat returns the chat through which the orchestrator shows turns. It can be used until Close.
func (b *Bot) Chat() *Chat { return b.chat }

// Budgets returns how many requests each chat may currently get without exceeding Telegram's rate limits.
func (b *Bot) Budgets() []outbox.Budget { return b.outbox.Budgets() }

// Backlog returns how many requests to Telegram are waiting, and how long the oldest has been waiting.
func (b *Bot) Backlog() (waiting int, oldest time.Duration) { return b.outbox.Backlog() }

// Run handles messages and buttons until ctx is done. It starts with stored updates that the previous process did not
// handle. Before Run returns, it waits for running handlers. Updates without a finished handler stay in the database.
// Between the end of Run and Close, the Bot still sends the orchestrator's messages. Run may be called only once.
// aborts is the result of StoredAborts.
//
// Run returns nil if ctx is done, ErrToken if Telegram rejects the token, orchestrator.ErrDiskFailed if the disk with
// the database fails, or another error of the database.
func (b *Bot) Run(ctx context.Context, desk Desk, aborts ...orchestrator.PendingAborts) error {
	me, err := updates.Identify(ctx, b.api, b.log)
	if err != nil || ctx.Err() != nil {
		return err
	}
	b.log.Info("serving as a bot", "username", me.Username, "id", me.ID)
	ctx, cancel := context.WithCancel(ctx)
	var small sync.WaitGroup
	defer small.Wait()
	defer cancel()
	if err := resumeStops(ctx, b.messages, desk, small.Go, b.opts.Lang, b.log); err != nil {
		return err
	}
	b.startMessages()
	b.chat.approvals.Attach(desk)
	b.chat.display.Attach(desk)
	if b.opts.Consults != nil {
		desk = consultDesk{desk, b.opts.Consults}
	}
	voice := &outboxFeedback{out: b.outbox, client: b.client, lang: b.opts.Lang, log: b.log}
	o := updates.RouterOptions{
		Me: me, Turns: desk, Feedback: voice, Uploads: b.uploads,
		Finisher: updates.NewFinisher(b.opts.Journal, b.messages, b.log),
		Owner:    b.opts.Owner, Allow: b.opts.Allow, Listener: b.opts.Listener, AlbumWindow: b.opts.AlbumWindow,
		PasteWindow: b.opts.PasteWindow, Names: b.chat.names, Lang: b.opts.Lang, Log: b.log, Now: time.Now,
		Lost: b.opts.Lost,
	}
	h := newHandlers(parts{
		opts: b.opts, desk: desk, feedback: voice, chat: b.chat,
		topics: &topicOpener{b.outbox, b.client, b.chat.icons}, spool: b.spool,
		tables: &tables.Screen{
			Answers: b.opts.Steps, Messages: b.messages, Spool: b.spool, Scrub: b.client.Scrubber(), Lang: b.opts.Lang,
		},
	}, o)
	small.Go(func() { b.prepare(ctx, h.commands.menu) })
	small.Go(func() { b.chat.lost.run(ctx) })
	r := h.router(o)
	b.chat.typing.start(h)
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		r.Stop(last)
	}()
	p := updates.NewPoller(updates.PollerOptions{
		API: b.api, Journal: b.opts.Journal, Router: r, Feedback: voice, Timeout: PollTimeout, Owner: b.opts.Owner,
		Conflict: b.notifyConflict, Polled: b.opts.Polled, Log: b.log, Now: time.Now,
	})
	if err := p.TakeUp(ctx); err != nil {
		return err
	}
	r.ReportAborts(aborts)
	return p.Run(ctx)
}

// startMessages starts a goroutine that sends stored messages until Close.
func (b *Bot) startMessages() {
	ctx, cancel := context.WithCancel(context.Background())
	b.endMessages = cancel
	b.running.Go(func() { b.messages.Run(ctx) })
}

// Close sends the messages that wait in the outbox, until ctx is done. It drops requests that may get lost, such as
// reactions. Unsent messages stay in the database for the next process. Call Close after Run has returned and the
// orchestrator is closed.
func (b *Bot) Close(ctx context.Context) error {
	if b.endMessages != nil {
		b.endMessages()
	}
	b.running.Wait()
	err := b.outbox.Drain(ctx)
	if t, ok := b.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	if b.spool != nil {
		err = errors.Join(err, b.spool.Close())
	}
	return errors.Join(err, b.uploads.Close())
}

const preparePatience = 30 * time.Second

// prepare removes a webhook and publishes the menu of commands. Run does not wait for prepare, because commands work
// without a menu, and the poller removes a webhook that is still set.
func (b *Bot) prepare(ctx context.Context, commands func(lang.Printer) []menuItem) {
	call, cancel := context.WithTimeout(ctx, preparePatience)
	defer cancel()
	var hook struct {
		URL string `json:"url"`
	}
	if err := b.api.Call(call, "getWebhookInfo", struct{}{}, &hook); err != nil {
		b.log.Warn("look for a webhook", "err", err)
	} else if hook.URL != "" {
		b.log.Warn("a webhook was set for this bot; it is removed, since ductor polls")
		if err := updates.RemoveWebhook(ctx, b.api); err != nil {
			b.log.Warn("remove webhook", "err", err)
		}
	}
	for i, l := range lang.Languages() {
		menu := map[string]any{"commands": commands(l.Printer())}
		if i > 0 { // the first menu has no language code, so Telegram uses it for all other languages
			menu["language_code"] = l
		}
		if err := b.api.Call(call, "setMyCommands", menu, nil); err != nil {
			b.log.Warn("publish the command menu", "language", l, "err", err)
		}
	}
}

// notifyConflict tells the bot's owner that another program polls with the same bot token.
func (b *Bot) notifyConflict(ctx context.Context) {
	if b.opts.Owner == 0 {
		return
	}
	id := orchestrator.ConversationID{Chat: int64(b.opts.Owner)}
	err := b.chat.Notice(ctx, id, b.opts.Lang.Of(id.Chat).Text("bot.conflict"))
	if err != nil {
		b.log.Warn("tell the owner about the conflict", "err", err)
	}
}
