package client

import (
	"cmp"
	"context"
	"os"
	"strings"

	"golang.org/x/term"
)

// Options configures a client.
type Options struct {
	Dir          string // ductor's state directory
	Conversation string // key or title of the conversation; empty for the private chat of the owner
	In, Out      *os.File
	Getenv       func(name string) string
	Lines        bool // each line of In is a prompt, even if In is not a terminal
}

// Attach shows a conversation until the user leaves, ctx ends, or ductor refuses the connection. In a terminal it
// uses the whole screen. In a pipe it prints plain lines.
func Attach(ctx context.Context, o Options) (err error) {
	if o.Conversation != "" {
		if o.Conversation, err = find(ctx, o.Dir, o.Conversation); err != nil {
			return err
		}
	}
	typed := term.IsTerminal(int(o.In.Fd()))
	if typed && term.IsTerminal(int(o.Out.Fd())) && o.Getenv("TERM") != "dumb" {
		return fillTerminal(ctx, o)
	}
	o.Lines = o.Lines || typed
	return printLines(ctx, o)
}

func (o Options) ascii() bool {
	locale := strings.ToLower(cmp.Or(o.Getenv("LC_ALL"), o.Getenv("LC_CTYPE"), o.Getenv("LANG")))
	return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}
