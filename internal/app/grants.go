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

// grants records who could use and control the bot when ductor last started: IDs of users and groups, the users' roles,
// and hashes of the token, the Bot API server and each agent's command. The file is not in storage.dir, but in the
// user's state directory: an attacker who changes the configuration could also change storage.dir.
type grants struct {
	Users  []int64           `json:"users"`  // allowed users; ductor also sends them messages about changes
	Roles  map[int64]string  `json:"roles"`  // roles of the allowed users; nil if an older version wrote the file
	Groups []int64           `json:"groups"` // groups in which every member may use ductor
	Token  string            `json:"token"`
	Server string            `json:"server"` // hash of the Bot API server, which sees the token and every message
	Agents map[string]string `json:"agents"` // hash of each agent's command, by the agent's name
}

func grantsOf(cfg config.Config) grants {
	now := grants{
		Users: cfg.Telegram.AllowedUsers, Groups: []int64{}, Token: hashOf(cfg.Telegram.Token.Reveal()),
		Server: hashOf(cfg.Telegram.APIBase), Agents: map[string]string{}, Roles: map[int64]string{},
	}
	for _, id := range now.Users {
		now.Roles[id] = cfg.RoleOfUser(id)
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

// changes describes the differences between two grants, one per line.
func (now grants) changes(p lang.Printer, before grants) (lines []string) {
	if added, removed := difference(now.Users, before.Users),
		difference(before.Users, now.Users); len(added)+len(removed) > 0 {
		lines = append(lines, p.Text("config.users", formatIDs(p, added), formatIDs(p, removed)))
	} else if !slices.Equal(now.Users, before.Users) {
		lines = append(lines, p.Text("config.first-user", strconv.FormatInt(now.Users[0], 10)))
	}
	var roles []string
	for _, id := range now.Users {
		if was, known := before.Roles[id]; known && was != now.Roles[id] {
			roles = append(roles, fmt.Sprintf("%d: %s → %s", id, was, now.Roles[id]))
		}
	}
	if len(roles) > 0 {
		lines = append(lines, p.Text("config.roles", strings.Join(roles, ", ")))
	}
	if added := difference(now.Groups, before.Groups); len(added) > 0 {
		lines = append(lines, p.Text("config.groups", formatIDs(p, added)))
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

func formatIDs(p lang.Printer, ids []int64) string {
	if len(ids) == 0 {
		return p.Text("config.none")
	}
	return strings.Trim(fmt.Sprint(ids), "[]")
}

// GrantsPath returns the path of the file that stores the grants for the configuration file with the given path.
func GrantsPath(file string) string {
	return filepath.Join(config.StateDir(), "started", hashOf(file)[:16]+".json")
}

// NotifyOfChanges compares the configuration with that of the last start. If different users can now use or control the
// bot, it sends a message to the users of the last start. It then records the current configuration.
func (a *App) NotifyOfChanges(ctx context.Context) {
	if a.cfg.File == "" {
		return
	}
	path, now := GrantsPath(a.cfg.File), grantsOf(a.now().Config)
	before, err := readGrants(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first start
	case err != nil:
		a.Log.Warn("read who was allowed at the last start; no user is notified of a change", "err", err)
	default:
		if err := a.notifyUsers(ctx, before, now); err != nil {
			a.Log.Warn("notify users of a changed configuration; the next start tries again", "err", err)
			return
		}
	}
	if err := writeGrants(path, now); err != nil {
		a.Log.Warn("record who is allowed, for the next start", "err", err)
	}
}

func (a *App) notifyUsers(ctx context.Context, before, now grants) (err error) {
	lines := now.changes(lang.Printer{}, before)
	if len(lines) == 0 {
		return nil
	}
	a.Log.Warn("the configuration changed since the last start; the users that it allowed then are notified",
		"changes", strings.Join(lines, "; "), "notified", formatIDs(lang.Printer{}, before.Users))
	if before.Token != hashOf(a.cfg.Telegram.Token.Reveal()) {
		a.Log.Warn("the bot changed since the last start: it reaches only users who have written to it")
	}
	for _, user := range before.Users {
		p := a.lang.Of(user)
		text := p.Text("config.changed") + "\n\n- " + strings.Join(now.changes(p, before), "\n- ") + "\n\n" +
			p.Text("config.not-you", a.cfg.File)
		err = errors.Join(err, a.bot.Chat().Notice(ctx, orchestrator.ConversationID{Chat: user}, text))
	}
	return err
}

func readGrants(path string) (record grants, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return record, err
	}
	return record, json.Unmarshal(b, &record)
}

// writeGrants replaces the file atomically.
func writeGrants(path string, record grants) error {
	b, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return rooted.ReplaceFile(path, append(b, '\n'), nil)
}
