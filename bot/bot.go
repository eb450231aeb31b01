package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"sync"
	"time"

	"ductor/bot/approval"
	"ductor/bot/card"
	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Options configure a Bot. Token, Journal and UploadsDir are required; zero values of the rest mean the
// defaults, and an empty Allow means that nobody is answered.
type Options struct {
	Token     string
	APIBase   string            // empty means https://api.telegram.org
	Transport http.RoundTripper // nil means tgapi.NewTransport("")
	Scrub     *tgapi.Scrubber   // nil means one that knows the token only

	Journal    orchestrator.Journal
	UploadsDir string // where files that people send are kept; made with mode 0700
	MaxUpload  int64  // bytes of a file that is fetched; 20 MB, which is also the most Telegram gives

	Allow      Allow
	Trigger    GroupTrigger          // TriggerMention
	AbortWords []string              // bare words that abort in private chats while something runs
	Receipts   Receipts              // ReactionReceipts
	Owner      orchestrator.PersonID // is told, in the private chat, about trouble with polling; 0 for nobody

	PollTimeout time.Duration // of a long poll, whole seconds; 50 s
	AlbumWindow time.Duration // how long further files of an album are waited for; 700 ms, negative for not at all
	PasteWindow time.Duration // how long the next part of a long paste is waited for; likewise

	Jobs orchestrator.Jobs // behind /cron; nil: none are kept

	Outbox outbox.Options
	Cards  card.Options // what they are made of is filled in

	Log    *slog.Logger     // nil discards
	Now    func() time.Time // of what people read; nil means time.Now
	Random io.Reader        // of nonces; nil means crypto/rand
}

// Bot is ductor's side of Telegram.
type Bot struct {
	opts    Options
	log     *slog.Logger
	api     *tgapi.API
	client  *tgapi.Client
	outbox  *outbox.Outbox
	letters *Letters
	chat    *Chat
	uploads *uploads

	endLetters context.CancelFunc
	running    sync.WaitGroup
}

// stopPatience is how long a shutdown waits for handlers at most.
const stopPatience = 10 * time.Second

// New makes a Bot, with what is known of the budgets of chats. It calls nothing, but what is shown through Chat from now on is sent, except for
// letters, which Run sends. Close ends it.
func New(ctx context.Context, o Options) (*Bot, error) {
	if o.Journal == nil || o.UploadsDir == "" {
		return nil, errors.New("a bot needs a journal and an uploads directory")
	}
	o = o.withDefaults()
	if o.PollTimeout < time.Second {
		return nil, fmt.Errorf("a long poll of %s is too short: at least 1s", o.PollTimeout)
	}
	if o.Transport == nil {
		t, err := tgapi.NewTransport("")
		if err != nil {
			return nil, err
		}
		o.Transport = t
	}
	client, err := tgapi.NewClient(tgapi.ClientOptions{Token: o.Token, APIBase: o.APIBase, Transport: o.Transport, Scrub: o.Scrub})
	if err != nil {
		return nil, err
	}
	b := &Bot{
		opts: o, log: o.Log, client: client,
		api: tgapi.NewAPI(o.APIBase, o.Token, o.Transport),
	}
	if b.uploads, err = openUploads(o.UploadsDir, o.MaxUpload, b.api); err != nil {
		return nil, err
	}
	o.Outbox.Store, o.Outbox.Trouble = o.Journal, tgapi.TroubleOf
	b.outbox = outbox.New(o.Outbox)
	if err := b.outbox.Restore(ctx); err != nil {
		return nil, err
	}
	b.letters = NewLetters(o.Journal, client, b.outbox, b.log)
	cards := o.Cards
	cards.Client, cards.Outbox, cards.Journal, cards.Buttons, cards.Log = client, b.outbox, o.Journal, turnButtons{}, b.log
	b.chat = &Chat{cards: card.New(cards), queue: newQueueCards(b.outbox, client, o.Journal, b.log), letters: b.letters,
		approvals: approval.New(approval.Options{Outbox: b.outbox, Client: client, Journal: o.Journal, Log: b.log, Now: o.Now})}
	return b, nil
}

func (o Options) withDefaults() Options {
	if o.APIBase == "" {
		o.APIBase = "https://api.telegram.org"
	}
	if o.Scrub == nil {
		o.Scrub = tgapi.NewScrubber(o.Token)
	}
	if o.MaxUpload <= 0 {
		o.MaxUpload = maxDownload
	}
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{{&o.PollTimeout, 50 * time.Second}, {&o.AlbumWindow, 700 * time.Millisecond}, {&o.PasteWindow, 700 * time.Millisecond}} {
		if *d.at == 0 {
			*d.at = d.def
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = slog.New(o.Scrub.Handler(o.Log.Handler()))
	if o.Outbox.Log == nil {
		o.Outbox.Log = o.Log
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return o
}

// PruneUploads removes files that people sent before a time, and returns how many.
func (b *Bot) PruneUploads(before time.Time) (int, error) { return b.uploads.prune(before) }

// Chat is where the orchestrator shows turns; valid until Close.
func (b *Bot) Chat() *Chat { return b.chat }

// Run serves people until ctx ends: it takes up what the previous process left in the journal, then polls. It
// returns once no handler runs any more; updates that were not dealt with stay in the journal. What the
// orchestrator still shows is sent until Close. Run is called once.
//
// It returns nil when ctx ended, ErrToken when Telegram refuses the token, orchestrator.ErrDiskFailed when the disk
// under the journal does, or that the journal failed.
func (b *Bot) Run(ctx context.Context, desk Desk) error {
	me, err := b.identify(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	b.log.Info("serving as a bot", "username", me.Username, "id", me.ID)
	b.startLetters()
	b.chat.approvals.Attach(desk)
	ctx, cancel := context.WithCancel(ctx)
	var small sync.WaitGroup
	small.Go(func() { b.prepare(ctx) })
	defer small.Wait()
	defer cancel()

	voice := &outVoice{out: b.outbox, client: b.client, log: b.log}
	r := assemble(parts{
		me: me, allow: b.opts.Allow, trigger: b.opts.Trigger, abortWords: b.opts.AbortWords, receipts: b.opts.Receipts,
		windows: mergeWindows{album: b.opts.AlbumWindow, paste: b.opts.PasteWindow},
		desk:    desk, journal: b.opts.Journal, mail: b.letters, uploads: b.uploads,
		voice:     voice,
		approvals: b.chat.approvals, queue: b.chat.queue, jobs: b.opts.Jobs,
		log: b.log, now: b.opts.Now, random: b.opts.Random,
	})
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		r.lanes.stop(last)
	}()
	p := &poller{
		api: b.api, journal: b.opts.Journal, dispatch: r.dispatch, strip: r.gate.strip, conflict: b.tellConflict,
		timeout: b.opts.PollTimeout, jitter: jitter, log: b.log, unfinished: &r.closer.unfinished,
		guard: &diskGuard{
			disk: b.opts.Journal, journal: b.opts.Journal, concerns: r.concerns, say: voice.say, owner: b.opts.Owner,
			now: b.opts.Now, log: b.log,
		},
	}
	return p.run(ctx)
}

// startLetters sends letters until Close.
func (b *Bot) startLetters() {
	ctx, cancel := context.WithCancel(context.Background())
	b.endLetters = cancel
	b.running.Go(func() {
		if err := b.letters.Run(ctx); err != nil {
			b.log.Error("letters are not sent", "err", err)
		}
	})
}

// Close sends what must be delivered until ctx ends, then gives up the rest; letters and cards that did
// not leave stay in the journal. Call it after Run returned and the orchestrator was closed.
func (b *Bot) Close(ctx context.Context) error {
	if b.endLetters != nil {
		b.endLetters()
	}
	b.running.Wait()
	err := b.outbox.Drain(ctx)
	if t, ok := b.opts.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return errors.Join(err, b.uploads.root.Close())
}

// identify asks Telegram who we are, for as long as it takes to reach it.
func (b *Bot) identify(ctx context.Context) (identity, error) {
	for tries := 1; ; tries++ {
		var me identity
		call, cancel := context.WithTimeout(ctx, callPatience)
		err := b.api.Call(call, "getMe", struct{}{}, &me)
		cancel()
		if err == nil || ctx.Err() != nil {
			return me, nil
		}
		if tgapi.TokenRefused(err) {
			return identity{}, ErrToken
		}
		wait := jitter(min(backoffBase<<min(tries-1, 6), backoffMost))
		if no := (*tgapi.AnswerError)(nil); errors.As(err, &no) {
			wait = max(wait, no.RetryAfter)
		}
		b.log.Warn("Telegram cannot be reached", "err", err, "again_in", wait)
		if pause(ctx, wait) != nil {
			return identity{}, nil
		}
	}
}

// prepare removes a webhook and publishes the command menu. Neither is worth waiting for: polling says so
// if a webhook is in the way, and commands work without a menu.
func (b *Bot) prepare(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	var hook struct {
		URL string `json:"url"`
	}
	if err := b.api.Call(call, "getWebhookInfo", struct{}{}, &hook); err != nil {
		b.log.Warn("look for a webhook", "err", err)
	} else if hook.URL != "" {
		b.log.Warn("a webhook was set for this bot; it is removed, since ductor polls")
		if err := removeWebhook(ctx, b.api); err != nil {
			b.log.Warn("remove webhook", "err", err)
		}
	}
	if err := b.api.Call(call, "setMyCommands", map[string]any{"commands": commandMenu()}, nil); err != nil {
		b.log.Warn("publish the command menu", "err", err)
	}
}

// tellConflict tells the owner that somebody else polls with our token.
func (b *Bot) tellConflict(ctx context.Context) {
	if b.opts.Owner == 0 {
		return
	}
	id := orchestrator.ConversationID{Chat: int64(b.opts.Owner)}
	err := b.chat.Notice(ctx, id, "⚠️ Another program takes messages with this bot's token, so some may not reach me. Stop the other one, or give one of us a token of its own from @BotFather.")
	if err != nil {
		b.log.Warn("tell the owner about the conflict", "err", err)
	}
}

// jitter spreads a wait over its upper half, so that many clients do not come back at once.
func jitter(d time.Duration) time.Duration { return d/2 + mathrand.N(d/2+1) }
