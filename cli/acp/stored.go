package acp

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/shared"
)

const (
	listWait  = 15 * time.Second // maximum time for starting the agent and listing its sessions
	listPages = 10               // maximum number of pages that ductor requests
	listMost  = 15               // maximum number of sessions that users see
)

// listed is the response to methodList.
type listed struct {
	Sessions []struct {
		ID      string `json:"sessionId"`
		Dir     string `json:"cwd"`
		Title   string `json:"title"`
		Updated string `json:"updatedAt"`
	} `json:"sessions"`
	Next string `json:"nextCursor"`
}

type listParams struct {
	Dir    string `json:"cwd"`
	Cursor string `json:"cursor,omitempty"`
}

// idShape matches session IDs that are safe as a command-line argument.
var idShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

var _ cli.SessionKeeper = (*Provider)(nil)

// StoredSessions implements cli.SessionKeeper. It starts the agent to query its sessions. It returns no sessions if the
// agent cannot list them.
func (p *Provider) StoredSessions(ctx context.Context, dir string) ([]cli.StoredSession, error) {
	if can := p.lists.Load(); can != nil && !*can {
		return nil, nil
	}
	if _, err := p.opts.Launcher.LookPath(p.opts.Path); err != nil {
		return nil, nil // an agent that is not installed has no sessions
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	req := cli.Request{Dir: dir}
	proc, err := p.private(ctx, req)
	if err != nil {
		return nil, err
	}
	var all []cli.StoredSession
	if err = proc.options().checkProject(req); err == nil { // the program may report an agent other than configured
		all, err = proc.sessionsOf(ctx, dir)
	}
	return all, errors.Join(err, proc.Leave(context.WithoutCancel(ctx), shared.Unused))
}

// sessionsOf lists the newest sessions of a directory.
func (proc *agentProcess) sessionsOf(ctx context.Context, dir string) (all []cli.StoredSession, err error) {
	can := proc.hello.Capabilities.Session.List != nil
	proc.provider.lists.Store(&can)
	for params, more := (listParams{Dir: dir}), can; more; {
		var page listed
		if err := proc.call(ctx, methodList, params, &page); err != nil {
			return nil, proc.options().failure(err)
		}
		for _, s := range page.Sessions {
			if s.Dir != dir || !idShape().MatchString(s.ID) {
				continue
			}
			title := cmp.Or(cli.OneLine(s.Title, maxLabel), s.ID)
			used, _ := time.Parse(time.RFC3339, s.Updated) // an unreadable time counts as the oldest
			all = append(all, cli.StoredSession{
				Agent: proc.options().Agent, ID: cli.AgentSessionID(s.ID), Dir: dir,
				First: title, Last: title, Used: used,
			})
		}
		more = page.Next != "" && page.Next != params.Cursor && len(all) < listPages*listMost
		params.Cursor = page.Next
	}
	slices.SortStableFunc(all, func(a, b cli.StoredSession) int { return b.Used.Compare(a.Used) })
	return all[:min(len(all), listMost)], nil
}

// ResumeCommand implements cli.SessionKeeper. It uses Entry.Resume of the catalogue.
func (p *Provider) ResumeCommand(id cli.AgentSessionID) (words []string) {
	for _, word := range p.opts.known.Resume {
		if word == p.opts.known.Command {
			word = p.opts.Path
		}
		words = append(words, strings.ReplaceAll(word, sessionMark, string(id)))
	}
	return words
}
