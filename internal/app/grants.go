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
	Users  []int64           `json:"users"`  // allowed users
	Roles  map[int64]string  `json:"roles"`  // roles of the allowed users; nil if an older version wrote the file
	Groups []int64           `json:"groups"` // groups in which every member may use ductor
	Token  string            `json:"token"`
	Server string            `json:"server"` // hash of the URL of the Bot API server, which sees all messages
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
// bot, it sends an alarm to the owners of the last start, and to owners who accepted an invitation. It then records the
// current configuration.
func (a *App) NotifyOfChanges(ctx context.Context) { a.raiseAlarm(ctx, "config.changed-since-start") }

// raiseAlarm implements NotifyOfChanges. The text of the alarm begins with title.
func (a *App) raiseAlarm(ctx context.Context, title lang.Key) {
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
		if err := a.alarmOwners(ctx, title, before, now); err != nil {
			a.Log.Warn("notify users of a changed configuration; the next start tries again", "err", err)
			return
		}
	}
	a.recordGrants(path, now)
}

func (a *App) recordGrants(path string, now grants) {
	if err := writeGrants(path, now); err != nil {
		a.Log.Warn("record who is allowed, for the next start", "err", err)
	}
}

func (a *App) alarmOwners(ctx context.Context, title lang.Key, before, now grants) error {
	lines := now.changes(lang.Printer{}, before)
	if len(lines) == 0 {
		return nil
	}
	owners := append(before.owners(), a.invitedOwners(before)...)
	a.Log.Warn("the configuration changed since the last start; the owners of then are notified",
		"changes", strings.Join(lines, "; "), "notified", formatIDs(lang.Printer{}, owners))
	if before.Token != hashOf(a.cfg.Telegram.Token.Reveal()) {
		a.Log.Warn("the bot changed since the last start: it reaches only users who have written to it")
	}
	return a.notify(ctx, owners, func(p lang.Printer) string {
		return p.Text(title) + "\n\n- " + strings.Join(now.changes(p, before), "\n- ") + "\n\n" +
			p.Text("config.not-you", a.cfg.File)
	})
}

// owners returns the allowed users who had the role of an owner when g was recorded. An older version recorded no
// roles. In this case, owners returns all allowed users, because any of them may have been an owner.
func (g grants) owners() []int64 {
	if g.Roles == nil {
		return slices.Clone(g.Users)
	}
	return slices.DeleteFunc(slices.Clone(g.Users), func(id int64) bool { return g.Roles[id] != config.UserOwner })
}

// invitedOwners returns the owners whom the configuration does not allow now and did not allow at the last start. These
// users became owners by an invitation, so an attacker who can change the configuration file cannot have added them.
func (a *App) invitedOwners(before grants) (owners []int64) {
	configured := slices.Concat(before.Users, a.now().Telegram.AllowedUsers)
	for _, id := range a.users.Having(orchestrator.ManageDuctor) {
		if !slices.Contains(configured, int64(id)) {
			owners = append(owners, int64(id))
		}
	}
	return owners
}

func (a *App) notify(ctx context.Context, users []int64, text func(lang.Printer) string) (err error) {
	for _, user := range users {
		in := orchestrator.ConversationID{Chat: user}
		err = errors.Join(err, a.bot.Chat().Notice(ctx, in, a.Scrub.String(text(a.lang.Of(user)))))
	}
	return err
}

// announceReload tells owners that a user reloaded the configuration. It then records the new grants, so that the next
// start raises no alarm about this reload. If a message cannot be sent, or if an earlier change still needs an alarm,
// announceReload records nothing, and the next start raises the alarm.
func (a *App) announceReload(ctx context.Context, owners []int64, r reloaded, text func(lang.Printer) string) {
	if err := a.notify(ctx, owners, text); err != nil {
		a.Log.Warn("notify owners of a reload; the next start tries again", "err", err)
		return
	}
	path := GrantsPath(a.cfg.File)
	recorded, err := readGrants(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(r.before.changes(lang.Printer{}, recorded)) == 0 {
		a.recordGrants(path, r.after)
	}
}

// ownersBesides returns the owners who get a private message when a user changes the configuration from a chat. It
// omits the user who made the change in a private chat, because the answer there contains all details. The answer in a
// group omits details.
func (a *App) ownersBesides(by orchestrator.Press) (owners []int64) {
	for _, id := range a.users.Having(orchestrator.ManageDuctor) {
		if id != by.Person || by.Conversation.Group() {
			owners = append(owners, int64(id))
		}
	}
	return owners
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
