package telegram

import "time"

// DefaultToken is the bot token that the server accepts if Options has none.
const DefaultToken = "424242:simulated-bot-token"

// Limits of Telegram that cannot be changed with Options.
const (
	MaxText         = 4096     // UTF-16 code units in a message
	MaxCaption      = 1024     // UTF-16 code units in a caption
	MaxCallbackData = 64       // bytes in the callback data of a button
	MaxDownload     = 20 << 20 // bytes of a file that a bot can download
	MaxUpload       = 50 << 20 // bytes in a request
	MaxEntities     = 100      // entities in a message; Telegram ignores further entities
	maxRawText      = 1 << 15  // bytes in a text, before invisible characters are removed
	maxPoll         = 50 * time.Second
)

// Options configures a Server. The zero value has no rate limits, and all messages, calls and files stay in memory.
type Options struct {
	Token    string // empty means DefaultToken
	BotID    UserID // 0 means the number before the colon of Token
	BotName  string // empty means "Ductor"
	Username string // empty means "ductor_bot"

	// Limits are the rate limits; see RealLimits and StrictLimits. The zero value means no limits.
	Limits Limits

	// CallbackTimeout limits how long Press waits for the bot's answer. Zero means 30 seconds.
	CallbackTimeout time.Duration

	// HideGroupTalk enables privacy mode, an option that users set with BotFather: in groups, the bot gets only
	// commands, mentions and replies to its messages.
	HideGroupTalk bool

	// ThrottlePolls makes the server slow down a client that calls getUpdates again with the same offset, like the real
	// server. Within half a second, such a call returns only one update. Within three seconds, it waits for at least
	// three seconds.
	ThrottlePolls bool

	// Without lists methods that the server does not have, to simulate an older server.
	Without []string

	// Now returns the time for dates, limits and expiry. If it is nil, the server uses time.Now. Methods that wait use
	// timers of package time even if Now is set.
	Now func() time.Time

	// KeepMessages limits the number of messages in each chat. KeepVersions limits the number of versions of each
	// message. KeepCalls limits the number of recorded calls. KeepFileBytes limits the total size of all files. Zero
	// means no limit.
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
