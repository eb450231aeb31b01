package simulated

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ductor/internal/app"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// collect adds to p.evidence what must be observed while ductor still runs, for example the chats. The method
// lookBehind adds the rest after ductor has ended.
func (p *player) collect() {
	e := &p.evidence
	e.Ended = time.Now()
	e.Documents = map[string]string{}
	for _, c := range p.town.chats {
		one := judge.Chat{Name: c.name, ID: c.ID(), Hurt: len(c.hurt) > 0, History: c.History(),
			Topics: map[telegram.TopicID]scenario.Place{}}
		for place, id := range c.topics {
			one.Topics[id] = place
		}
		for _, m := range one.History {
			if m.Media != nil && m.From.Bot {
				data, _ := p.Telegram.FileData(m.Media.FileID)
				e.Documents[m.Media.FileID] = string(data)
			}
		}
		e.Chats = append(e.Chats, one)
	}
	e.Calls = p.Telegram.Calls()
	e.Pending = p.Telegram.PendingUpdates()
	e.Agents = p.machine.agentEvents()
	e.Files = p.files("project")
}

// lookBehind adds to p.evidence what can be observed after ductor has ended, for example files.
func (p *player) lookBehind() {
	e := &p.evidence
	for _, note := range p.notes {
		note()
	}
	e.Stops, e.Faults.Disk = p.stops, p.disk.failures()
	e.Texts = p.files("state")
	e.Texts["the log"] = strings.Join(p.logOfDuctor(), "\n")
	checked := store.Check(context.Background(), filepath.Join(p.path("state"), app.DatabaseFile))
	stored, err := stored(p.path("state"))
	for _, err := range []error{checked, err} {
		if err != nil {
			stored.Damage = append(stored.Damage, err.Error())
		}
	}
	e.Stored = stored
	for name := range p.files("tmp") {
		if strings.HasPrefix(name, "claude-tasks/") { // files of the scripted agent
			continue
		}
		e.Left = append(e.Left, "a temporary file: "+name)
	}
}

func stored(state string) (judge.Stored, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(state, app.DatabaseFile)+"?mode=ro")
	if err != nil {
		return judge.Stored{}, err
	}
	defer db.Close()
	return judge.Read(db)
}

// logOfDuctor returns the lines that ductor has written to its log.
func (p *player) logOfDuctor() (all []string) {
	for _, line := range p.log.all() {
		if _, said, ok := strings.Cut(line, " ductor "); ok {
			all = append(all, said)
		}
	}
	return all
}

// files returns the contents of all files below a subdirectory of World.dir. The keys are paths relative to the
// subdirectory.
func (p *player) files(name string) map[string]string {
	all := map[string]string{}
	root := p.path(name)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		all[strings.TrimPrefix(path, root+"/")] = string(text)
		return nil
	})
	p.trouble("look at files", err)
	return all
}
