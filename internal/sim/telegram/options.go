package telegram

import "time"

// DefaultToken is the accepted bot token if Options sets none.
const DefaultToken = "424242:simulated-bot-token"

// Limits of the original that no option changes, in the units Telegram counts.
const (
	MaxText         = 4096     // UTF-16 units of a message
	MaxCaption      = 1024     // UTF-16 units of a caption
	MaxCallbackData = 64       // bytes of a button's data
	MaxDownload     = 20 << 20 // bytes getFile hands out
	MaxUpload       = 50 << 20 // bytes of one request
	MaxEntities     = 100      // entities of a message; Telegram drops the rest without a word
	maxRawText      = 1 << 15  // bytes of a text before it is even looked at
	maxPoll         = 50 * time.Second
)

// Options set up a server. The zero value is a permissive, unbounded server: no rate limits, everything remembered.
type Options struct {
	Token    string // DefaultToken when empty
	BotID    UserID // the number before the colon of Token when zero
	BotName  string // "Ductor" when empty
	Username string // "ductor_bot" when empty

	// Limits are the rate buckets; the zero value has no limits. See RealLimits and StrictLimits.
	Limits Limits

	// CallbackTimeout is how long a button press may wait for its answer; 30 s when zero.
	CallbackTimeout time.Duration

	// HideGroupTalk is the privacy mode of BotFather: in groups the bot sees only commands, mentions and replies to it.
	HideGroupTalk bool

	// ThrottlePolls copies the original's answer to a client that polls in a tight loop: the same offset within
	// half a second yields one update, within three seconds a poll waits at least three.
	ThrottlePolls bool

	// Without lists methods that the server lacks, like an older server.
	Without []string

	// Now is the clock for dates, limits and expiry; time.Now when nil. Waiting always uses package time's timers.
	Now func() time.Time

	// KeepMessages, KeepVersions and KeepCalls limit the memory: messages per chat, versions per message, calls per server.
	// KeepFileBytes limits the bytes of all files. Zero means no limit.
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
