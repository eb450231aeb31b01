package telegram

import "time"

// DefaultToken is the accepted bot token if Options sets none.
const DefaultToken = "424242:simulated-bot-token"

// Limits of the original that no option changes, in Telegram's units.
const (
	MaxText         = 4096     // UTF-16 units of a message
	MaxCaption      = 1024     // UTF-16 units of a caption
	MaxCallbackData = 64       // bytes of a button's data
	MaxDownload     = 20 << 20 // bytes that getFile returns
	MaxUpload       = 50 << 20 // bytes of one request
	MaxEntities     = 100      // entities of a message; Telegram drops the rest
	maxRawText      = 1 << 15  // bytes of a text before it is cleaned
	maxPoll         = 50 * time.Second
)

// Options configure a server. The zero value has no rate limits and no memory limits.
type Options struct {
	Token    string // empty means DefaultToken
	BotID    UserID // 0 means the number before the colon of Token
	BotName  string // empty means "Ductor"
	Username string // empty means "ductor_bot"

	// Limits are the rate limits. The zero value has no limits. See RealLimits and StrictLimits.
	Limits Limits

	// CallbackTimeout is how long a press of a button waits for its answer. Zero means 30 seconds.
	CallbackTimeout time.Duration

	// HideGroupTalk enables BotFather's privacy mode: in groups, the bot gets only commands, mentions and replies to
	// it.
	HideGroupTalk bool

	// ThrottlePolls slows down a client that repeats an offset, as the original does. Within half a second, a poll
	// returns one update. Within three seconds, a poll waits at least three seconds.
	ThrottlePolls bool

	// Without lists methods that the server does not have, like an older server.
	Without []string

	// Now is the clock for dates, limits and expiry. Nil means time.Now. Waits always use timers of package time.
	Now func() time.Time

	// KeepMessages, KeepVersions and KeepCalls limit the memory for messages of a chat, versions of a message, and
	// calls. KeepFileBytes limits the bytes of all files. Zero means no limit.
	KeepMessages, KeepVersions, KeepCalls int
	KeepFileBytes                         int64
}

func (o Options) withDefaults() Options {
	if o.Token == "" {
		o.Token = DefaultToken
	}
	if o.BotID == 0 {
		o.BotID = idOfToken(o.Token)
	}
	if o.BotName == "" {
		o.BotName = "Ductor"
	}
	if o.Username == "" {
		o.Username = "ductor_bot"
	}
	if o.CallbackTimeout == 0 {
		o.CallbackTimeout = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func idOfToken(token string) UserID {
	var id UserID
	for _, c := range token {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + UserID(c-'0')
	}
	if id == 0 {
		id = 424242
	}
	return id
}
