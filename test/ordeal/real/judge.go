package real

import (
	"bytes"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/internal/sim/telegram"
)

// judgeChats compares what agents did with what the chats show.
func (o *ordeal) judgeChats() {
	effects, _ := os.ReadFile(o.effects())
	for _, name := range o.names {
		p := o.prompts[name]
		ran := strings.Count("\n"+string(effects), "\n"+name+"\n")
		shown := completeAnswers(p)
		offers := 0
		for _, m := range p.chat.View().FromBot() {
			if m.HasButton(runAgain) || m.HasButton(showAgain) {
				offers++
			}
		}
		switch {
		case ran > p.asked:
			o.violation("%s (%s) ran %d times; it was asked for %d times", name, p.kind, ran, p.asked)
		case shown > 1+len(o.again):
			o.violation("%s (%s) is shown %d times", name, p.kind, shown)
		case shown == 0 && !p.aborted && offers == 0 && p.kind != "long":
			o.violation("%s (%s) ran %d times; its chat shows no complete answer and offers nothing:\n%s", name, p.kind, ran, p.chat.Transcript())
		}
	}
}

// completeAnswers counts the answers to a prompt that its chat shows from begin to end.
func completeAnswers(p *prompt) (n int) {
	var all []string
	for _, m := range p.chat.View().FromBot() {
		all = append(all, strings.Fields(m.Text)...)
	}
	text := strings.Join(all, " ")
	begin := p.token + "-begin " + words(p.token, 12)
	end := words(p.token, 12) + " " + p.token + "-end"
	for at := strings.Index(text, end); at >= 0; at = strings.Index(text, end) {
		if strings.Contains(text[:at], begin) {
			n++
		}
		text = text[at+len(end):]
	}
	return n
}

// judgeLeftovers looks for whatever ductor left behind after its end.
func (o *ordeal) judgeLeftovers() {
	if err := eventually("the end of all processes", func() bool { return len(processes()) == 0 }); err != nil {
		for _, p := range processes() {
			o.violation("left behind: %v", p)
		}
	}
	o.judgeDatabase()
	o.judgeFiles()
	o.judgeSecrets()
	if err := o.disk.check(); err != nil {
		o.violation("%v", err)
	}
}

func (o *ordeal) judgeDatabase() {
	db, err := sql.Open("sqlite3", "file:"+o.database()+"?mode=ro&immutable=1")
	if err != nil {
		o.violation("%v", err)
		return
	}
	defer db.Close()
	var said string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&said); err != nil || said != "ok" {
		o.violation("the check of the database: %q %v", said, err)
	}
	var broken int
	if err := db.QueryRow(`SELECT count(*) FROM pragma_foreign_key_check`).Scan(&broken); err != nil || broken > 0 {
		o.violation("%d rows of the database name rows that are not there: %v", broken, err)
	}
}

// files are all that may be below ductor's state directory after an ordered end, beside outgoing files and uploads.
var stateFiles = []string{".", "ductor.db"}

// judgeFiles looks for temporary files, journals, sockets and locks.
func (o *ordeal) judgeFiles() {
	for _, at := range []struct {
		dir  string
		keep []string
	}{{o.state(), stateFiles}, {o.path("tmp"), []string{"."}}} {
		err := filepath.WalkDir(at.dir, func(path string, _ fs.DirEntry, err error) error {
			below, _ := filepath.Rel(at.dir, path)
			if err == nil && !slices.Contains(at.keep, below) {
				o.violation("left behind: %s", path)
			}
			return err
		})
		if err != nil {
			o.violation("%v", err)
		}
	}
}

// judgeSecrets looks for the planted secrets in every file but those that hold them by right, and in all calls to Telegram.
func (o *ordeal) judgeSecrets() {
	err := filepath.WalkDir(o.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || path == o.config() || path == o.path("image") || strings.HasPrefix(path, o.path("opt")) {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for name, value := range o.secrets {
			if bytes.Contains(raw, []byte(value)) {
				o.violation("%s is in %s", name, path)
			}
		}
		return err
	})
	if err != nil {
		o.violation("%v", err)
	}
	for _, call := range o.srv.Calls(telegram.Writes) {
		for field, text := range call.Params {
			for name, value := range o.secrets {
				if strings.Contains(text, value) {
					o.violation("%s is in the field %s of a call of %s", name, field, call.Method)
				}
			}
		}
	}
}
