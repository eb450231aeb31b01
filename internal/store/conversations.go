package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/lang"
	"ductor/orchestrator"
)

func (db *DB) Conversation(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Conversation, error) {
	c, err := sqlite.OneCached(ctx, db.file, sqlite.Source{Name: string(id.Key()), Tables: []string{"conversations"}},
		db.scanConversation, `SELECT coalesce(session, ''), agent, model, effort, permission, dir, role, busy,
			bypass_until, bypass_life, notify, think, tools, display, granted_in, accounts
		FROM conversations WHERE chat = ? AND topic = ?`, id.Chat, id.Topic)
	c, err = mapNoRows(c, err, nil)
	c.ID, c.Tools.Only, c.Tools.Denied = id, slices.Clone(c.Tools.Only), slices.Clone(c.Tools.Denied)
	return c, wrap(fmt.Sprintf("load conversation %s", id.Key()), err)
}

// SaveConversation returns ErrNoSession if c refers to an unknown session.
func (db *DB) SaveConversation(
	ctx context.Context, c orchestrator.Conversation, audit ...orchestrator.AuditEntry,
) error {
	tools, err := encodeTools(c.Tools)
	if err != nil {
		return wrap(fmt.Sprintf("save conversation %s", c.ID.Key()), err)
	}
	accounts, err := encodeAccounts(c.Settings.Accounts)
	if err != nil {
		return wrap(fmt.Sprintf("save conversation %s", c.ID.Key()), err)
	}
	err = db.write(ctx, func(t tx) error {
		_, err := t.ExecRow(string(c.ID.Key()), `INSERT INTO conversations (chat, topic, session, agent, model, effort,
			permission, dir, role, busy, bypass_until, bypass_life, notify, think, tools, display, granted_in,
			accounts)
			VALUES (?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (chat, topic) DO UPDATE SET session = excluded.session, agent = excluded.agent,
				model = excluded.model, effort = excluded.effort, permission = excluded.permission,
				dir = excluded.dir, role = excluded.role, busy = excluded.busy, bypass_until = excluded.bypass_until,
				bypass_life = excluded.bypass_life,
				notify = excluded.notify, think = excluded.think, tools = excluded.tools, display = excluded.display,
				granted_in = excluded.granted_in, accounts = excluded.accounts`,
			c.ID.Chat, c.ID.Topic, string(c.Session), string(c.Agent), string(c.Model), string(c.Effort),
			string(c.Permission), c.Dir, c.Role, string(c.Settings.Busy), millis(c.BypassUntil),
			db.life, string(c.Settings.Notify), string(c.Settings.Think), tools, string(c.Settings.Display),
			string(c.GrantedIn), accounts)
		if err != nil {
			return mapForeignKey(err)
		}
		return t.audit(audit...)
	})
	return wrap(fmt.Sprintf("save conversation %s", c.ID.Key()), err)
}

func (db *DB) EndedBypasses(ctx context.Context) ([]orchestrator.ConversationID, error) {
	over, err := sqlite.Many(ctx, db.file, scan(conversationIDFields),
		`SELECT chat, topic FROM conversations WHERE permission = ? AND bypass_life <> ?`, string(cli.Bypass), db.life)
	return over, wrap("list ended bypasses", err)
}

func (db *DB) EndBypasses(ctx context.Context, over []orchestrator.ConversationID, at time.Time) error {
	return wrap("end bypasses", db.write(ctx, func(t tx) error {
		// The list `over` may be outdated, so update all conversations whose bypass has ended.
		_, err := t.Exec(`UPDATE conversations SET permission = ?, bypass_until = 0
			WHERE permission = ? AND bypass_life <> ?`, string(cli.Ask), string(cli.Bypass), db.life)
		for _, id := range over {
			if err == nil {
				err = t.audit(orchestrator.AuditEntry{At: at, What: orchestrator.AuditMode, Conversation: id,
					Title: string(cli.Ask), Reason: "ductor was restarted"})
			}
		}
		return err
	}))
}

func conversationIDFields(id *orchestrator.ConversationID) []any { return []any{&id.Chat, &id.Topic} }

// scanConversation reads a row. The permission mode "bypass" ends with the process in which the user chose it. If a
// previous process stored this mode, scanConversation returns the mode "ask", even if EndBypasses has not changed the
// row yet.
func (db *DB) scanConversation(row sqlite.Row) (c orchestrator.Conversation, err error) {
	var tools, accounts, life string
	err = row.Scan(&c.Session, &c.Agent, &c.Model, &c.Effort, &c.Permission, &c.Dir, &c.Role, &c.Settings.Busy,
		timeColumn{&c.BypassUntil}, &life, &c.Settings.Notify, &c.Settings.Think, &tools, &c.Settings.Display,
		&c.GrantedIn, &accounts)
	if c.Permission == cli.Bypass && life != db.life {
		c.Permission, c.BypassUntil = cli.Ask, time.Time{}
	}
	if err == nil {
		c.Tools, err = decodeTools(tools)
	}
	if err == nil && accounts != "" {
		err = decode(accounts, &c.Settings.Accounts)
	}
	return c, err
}

type toolsRow struct {
	Only   []string `json:"only,omitempty"`
	Denied []string `json:"denied,omitempty"`
}

// encodeTools returns a tool list as JSON, or "" for an empty list.
func encodeTools(list cli.ToolList) (string, error) {
	if list.Empty() {
		return "", nil
	}
	return encode(toolsRow(list))
}

// encodeAccounts returns accounts as JSON, or "" for none.
func encodeAccounts(accounts cli.Accounts) (string, error) {
	if len(accounts) == 0 {
		return "", nil
	}
	return encode(accounts)
}

func decodeTools(text string) (cli.ToolList, error) {
	var row toolsRow
	err := decode(text, &row)
	return cli.ToolList(row), err
}

// mapForeignKey replaces the error of a violated foreign key with ErrNoSession.
func mapForeignKey(err error) error {
	if sqlite.IsForeignKey(err) {
		return orchestrator.ErrNoSession
	}
	return err
}

func (db *DB) WaitingConversations(ctx context.Context) ([]orchestrator.ConversationID, error) {
	all, err := sqlite.Many(ctx, db.file, scan(conversationIDFields),
		`SELECT DISTINCT chat, topic FROM turns WHERE delivered = 0 ORDER BY chat, topic`)
	return all, wrap("list waiting conversations", err)
}

const languageColumns = `id, chosen, heard`

func languageFields(c *lang.Choice) []any { return []any{&c.ID, &c.Chosen, &c.Heard} }

// Languages lists the choices that SaveLanguage stored.
func (db *DB) Languages(ctx context.Context) ([]lang.Choice, error) {
	all, err := sqlite.Many(ctx, db.file, scan(languageFields), `SELECT `+languageColumns+` FROM languages`)
	return all, wrap("list languages", err)
}

// SaveLanguage stores the language of a user or group, and replaces the previous one. It uses a shared transaction, so
// that the first answer in a chat does not wait for the disk. The change cannot be lost: until the commit, Telegram
// keeps the update with the user's choice, and would send it again.
func (db *DB) SaveLanguage(ctx context.Context, c lang.Choice) error {
	return wrap("save a language", db.writeShared(ctx, func(t tx) error {
		return t.upsert("languages", "id", languageColumns, languageFields(&c)...)
	}))
}
