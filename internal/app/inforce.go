package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ductor/internal/config"
	"ductor/internal/rooted"
	"ductor/lang"
	"ductor/orchestrator"
)

// inForce records which users owned the bot at a start and which programs were its agents: ids, and hashes of the rest.
// The record lies in the user's state directory, since a changed configuration may move storage.dir.
type inForce struct {
	Users  []int64           `json:"users"`  // they are notified of a change
	Groups []int64           `json:"groups"` // those in which ductor answers every member
	Token  string            `json:"token"`
	Server string            `json:"server"` // it learns the token and every message
	Agents map[string]string `json:"agents"` // the hash of how each is started, by its name
}

func inForceOf(cfg config.Config) inForce {
	now := inForce{
		Users: cfg.Telegram.AllowedUsers, Groups: []int64{}, Token: hashOf(cfg.Telegram.Token.Reveal()),
		Server: hashOf(cfg.Telegram.APIBase), Agents: map[string]string{},
	}
	if cfg.Telegram.GroupMembers == "all" {
		now.Groups = cfg.Telegram.AllowedGroups
	}
	for name, one := range cfg.Agents.Own() {
		now.Agents[string(name)] = hashOf(one.Path)
	}
	for name, one := range cfg.Agents.ACP {
		now.Agents[name] = hashOf(append([]string{one.Path}, one.Args...)...)
	}
	return now
}

func hashOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// changes says line by line what is different now from what was in force before.
func (now inForce) changes(p lang.Printer, before inForce) (lines []string) {
	if added, removed := difference(now.Users, before.Users), difference(before.Users, now.Users); len(added)+len(removed) > 0 {
		lines = append(lines, p.Text("config.users", listed(p, added), listed(p, removed)))
	} else if !slices.Equal(now.Users, before.Users) {
		lines = append(lines, p.Text("config.first-user", strconv.FormatInt(now.Users[0], 10)))
	}
	if added := difference(now.Groups, before.Groups); len(added) > 0 {
		lines = append(lines, p.Text("config.groups", listed(p, added)))
	}
	if now.Token != before.Token {
		lines = append(lines, p.Text("config.token"))
	}
	if now.Server != before.Server {
		lines = append(lines, p.Text("config.server"))
	}
	var agents []string
	for name, hash := range now.Agents {
		if was, known := before.Agents[name]; was != hash && (known || hash != hashOf("")) {
			agents = append(agents, name)
		}
	}
	if len(agents) > 0 {
		slices.Sort(agents)
		lines = append(lines, p.Text("config.agents", strings.Join(agents, ", ")))
	}
	return lines
}

func difference(a, b []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(a), func(id int64) bool { return slices.Contains(b, id) })
}

func listed(p lang.Printer, ids []int64) string {
	if len(ids) == 0 {
		return p.Text("config.none")
	}
	return strings.Trim(fmt.Sprint(ids), "[]")
}

// InForcePath is the record of the configuration in file.
func InForcePath(file string) string {
	return filepath.Join(config.StateDir(), "started", hashOf(file)[:16]+".json")
}

// TellChanges notifies the users that the last start allowed what has changed in the configuration since, and records what
// is in force now.
func (a *App) TellChanges(ctx context.Context) {
	if a.cfg.File == "" {
		return
	}
	path, now := InForcePath(a.cfg.File), inForceOf(a.now().Config)
	before, err := readInForce(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first start
	case err != nil:
		a.Log.Warn("what was in force at the last start cannot be read, so that no user is notified of a change", "err", err)
	default:
		if err := a.notifyUsers(ctx, before, now); err != nil {
			a.Log.Warn("notify users of a changed configuration; it is tried again at the next start", "err", err)
			return
		}
	}
	if err := writeInForce(path, now); err != nil {
		a.Log.Warn("record what is in force, to tell of changes at the next start", "err", err)
	}
}

func (a *App) notifyUsers(ctx context.Context, before, now inForce) (err error) {
	lines := now.changes(lang.Printer{}, before)
	if len(lines) == 0 {
		return nil
	}
	a.Log.Warn("the configuration changed since the last start; the users that it allowed then are notified",
		"changes", strings.Join(lines, "; "), "notified", listed(lang.Printer{}, before.Users))
	if before.Token != hashOf(a.cfg.Telegram.Token.Reveal()) {
		a.Log.Warn("this is another bot than at the last start: it reaches only users who have written to it")
	}
	for _, user := range before.Users {
		p := a.lang.Of(user)
		text := p.Text("config.changed") + "\n\n- " + strings.Join(now.changes(p, before), "\n- ") + "\n\n" + p.Text("config.not-you", a.cfg.File)
		err = errors.Join(err, a.bot.Chat().Notice(ctx, orchestrator.ConversationID{Chat: user}, text))
	}
	return err
}

func readInForce(path string) (record inForce, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return record, err
	}
	return record, json.Unmarshal(b, &record)
}

// writeInForce replaces the record at once, so that a crash leaves the old one or the new one.
func writeInForce(path string, record inForce) error {
	b, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return rooted.ReplaceFile(path, append(b, '\n'), nil)
}
