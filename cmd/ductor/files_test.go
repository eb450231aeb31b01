package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// picture returns a small PNG file that is larger than its thumbnail.
func picture(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 200, 150))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// awaitFile waits for a message of the bot with a file of this kind and name, and returns the file.
func (town *town) awaitFile(kind, name string) (telegram.Message, []byte) {
	town.t.Helper()
	m, err := town.chat.AwaitMessage(town.soon(), func(m telegram.Message) bool {
		return m.From.Bot && m.Media != nil && m.Media.Kind == kind && (name == "" || m.Media.Name == name)
	})
	if err != nil {
		town.fatal(err)
	}
	data, _ := town.srv.FileData(m.Media.FileID)
	return m, data
}

func (town *town) makeFile(name string, content []byte) {
	town.t.Helper()
	at := filepath.Join(town.cfg.Projects.DefaultDir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		town.t.Fatal(err)
	}
	if err := os.WriteFile(at, content, 0o600); err != nil {
		town.t.Fatal(err)
	}
}

func TestAnAnswerBringsFiles(t *testing.T) {
	town := newTown(t, nil)
	chart := picture(t)
	town.makeFile("out/chart.png", chart)
	town.makeFile("out/plan.png", chart)
	town.makeFile("out/report.txt", []byte("The token is "+town.srv.Token()+"."))
	town.say(
		`[[text "Here:\n\n[[file: out/report.txt]]\n\n[[file: out/chart.png | The chart]]\n\n[[file: out/plan.png]]\n\n[[file: .env]]\n\nDone."]]`)
	m := town.awaitDone(1)
	if want := "Here:\n\n📎 report.txt\n\n📎 chart.png\n\n📎 plan.png\n\n📎 .env\n\nDone."; !strings.Contains(m.Text,
		want) {
		t.Errorf("the answer is shown as %q", m.Text)
	}
	if _, text := town.awaitFile("document", "report.txt"); strings.Contains(string(text), town.srv.Token()) ||
		!strings.HasPrefix(string(text), "The token is ") {
		t.Errorf("the report is %q", text)
	}
	town.awaitFile("photo", "")
	var album []telegram.Message
	for _, m := range town.chat.View().FromBot() {
		if m.Album != "" {
			album = append(album, m)
		}
	}
	if len(album) != 2 || album[0].Text != "The chart" || album[1].Text != "" || album[0].Album != album[1].Album {
		t.Fatalf("the pictures arrive as %+v", album)
	}
	if data, _ := town.srv.FileData(album[0].Media.FileID); !bytes.Equal(data, chart) {
		t.Error("the chart is another one")
	}
	town.await(".env: I don't touch hidden files and folders")
	if left, err := os.ReadDir(filepath.Join(town.cfg.Storage.Dir, "outgoing")); err != nil || len(left) > 0 {
		t.Errorf("%d files are kept, %v", len(left), err)
	}
}

// An answer that breaks off sends the files that it names. After an abort, the chat says how to get them.
func TestTheFilesOfAnAnswerThatBrokeOff(t *testing.T) {
	town := newTown(t, nil)
	town.makeFile("out/report.txt", []byte("42"))
	town.makeFile("out/plan.txt", []byte("plan"))
	town.say(`[[text "Here it is:\n\n[[file: out/report.txt]]\n\nAnd more."]] [[error 400 message="no, no"]]`)
	town.awaitFile("document", "report.txt")
	town.await("no, no")
	town.say(`[[text "Look:\n\n[[file: out/plan.txt]]\n\nAnd more."]] [[hang]]`)
	town.await("📎 plan.txt")
	town.say("/abort")
	town.await("📎 Not sent, because the turn was stopped: out/plan.txt. /get out/plan.txt sends a file.")
	town.say("/get out/plan.txt")
	town.awaitFile("document", "plan.txt")
}

func TestMarkersOfFilesCanBeSwitchedOff(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Files.Marker = false })
	town.makeFile("a.txt", []byte("a"))
	town.say(`[[text "See [[file: a.txt]]."]]`)
	if m := town.awaitDone(1); !strings.Contains(m.Text, "See [[file: a.txt]].") {
		t.Errorf("the answer is shown as %q", m.Text)
	}
	town.say(`[[text "second"]]`)
	town.awaitDone(2)
	for _, m := range town.chat.View().FromBot() {
		if m.Media != nil {
			t.Errorf("a file was sent: %+v", m.Media)
		}
	}
}

func TestUsersGetAndPutFiles(t *testing.T) {
	town := newTown(t, nil)
	dir := town.cfg.Projects.DefaultDir
	town.makeFile("out/report.txt", []byte("42"))
	town.makeFile("id_rsa", []byte("x"))
	town.makeFile("prod.tfstate", []byte("x"))
	town.makeFile("cluster.yaml", []byte("kind: Config\ncurrent-context: prod\n"))
	outside := filepath.Join(town.cfg.Storage.Dir, "outside")
	if err := errors.Join(os.WriteFile(outside, []byte("x"), 0o600), os.Link(outside, filepath.Join(dir, "hard")),
		os.Symlink("/etc/hostname", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	town.say("/get out/report.txt")
	if _, data := town.awaitFile("document", "report.txt"); string(data) != "42" {
		t.Errorf("it arrives as %q", data)
	}
	for path, want := range map[string]string{
		"none": "no such file", "/etc/hostname": "outside", "link": "symbolic link", "id_rsa": "passwords and keys",
		"hard": "hard link", "prod.tfstate": "passwords and keys", "cluster.yaml": "it holds a secret",
		"../x": "outside",
		filepath.Join(town.cfg.Storage.Dir, "ductor.db"): "outside",
	} {
		town.awaitAfter(town.say("/get %s", path), want)
	}

	file := town.chat.Person().SendDocument(town.chat, telegram.File{Name: "data.csv", Data: []byte("1,2")},
		telegram.WithCaption("/put"))
	town.awaitAfter(file, "Saved as "+filepath.Join(dir, "data.csv"))
	town.chat.Person().Send(town.chat, "/put out/other.csv", telegram.ReplyTo(file.ID))
	town.await("Saved as " + filepath.Join(dir, "out/other.csv"))
	town.awaitAfter(town.chat.Person().Send(town.chat, "/put", telegram.ReplyTo(file.ID)),
		"there is already a file with this name")
	town.awaitAfter(town.chat.Person().Send(town.chat, "/put link/x", telegram.ReplyTo(file.ID)), "symbolic link")
	town.awaitAfter(town.say("/put"), "Reply with /put")
	files := []telegram.File{csvFile("1.csv"), csvFile("2.csv"), csvFile("data.csv")}
	album := town.chat.Person().SendAlbum(town.chat, files, telegram.WithCaption("/put"))
	town.awaitAfter(album[2], "Saved as "+filepath.Join(dir, "1.csv")+".\nSaved as "+filepath.Join(dir, "2.csv")+
		".\ndata.csv: there is already a file")
	for name, want := range map[string]string{"data.csv": "1,2", "out/other.csv": "1,2"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}

	m := town.awaitKeyboard(town.say("/files"), "📁 out")
	town.pressOn(m, "📁 out")
	m = town.awaitKeyboard(m, "📄 report.txt")
	town.pressOn(m, "📄 report.txt · 2 B")
	if _, err := town.chat.Await(town.soon(), func(v telegram.View) bool {
		n := 0
		for _, m := range v.FromBot() {
			if m.Media != nil && m.Media.Name == "report.txt" {
				n++
			}
		}
		return n == 2
	}); err != nil {
		town.fatal(err)
	}
	if asked := town.asked(private); len(asked) > 0 {
		t.Errorf("files that were put are prompts: %+v", asked)
	}
}

// awaitKeyboard waits for a message of the bot, at or after another one, with a button. It fails if the chat shows a
// file of keys.
func (town *town) awaitKeyboard(after telegram.Message, button string) telegram.Message {
	town.t.Helper()
	m, err := town.chat.AwaitMessage(town.soon(), func(m telegram.Message) bool {
		for _, row := range m.Keyboard {
			for _, b := range row {
				if m.ID >= after.ID && strings.HasPrefix(b.Text, button) {
					return true
				}
			}
		}
		return false
	})
	if err != nil {
		town.fatal(err)
	}
	for _, row := range m.Keyboard {
		for _, b := range row {
			if strings.Contains(b.Text, "id_rsa") || strings.Contains(b.Text, "link") {
				town.t.Errorf("there is a button %q", b.Text)
			}
		}
	}
	return m
}

func TestABotWithoutTheRightToSendFilesSaysSo(t *testing.T) {
	town := newTown(t, nil)
	town.makeFile("a.txt", []byte("a"))
	town.makeFile("chart.png", picture(t))
	town.chat.ForbidFiles()
	town.awaitAfter(town.say("/get a.txt"), "Telegram didn't accept a.txt: Bad Request: not enough rights to send documents to the chat")
	town.awaitAfter(town.say(`[[text "[[file: chart.png]]"]]`), "Telegram didn't accept chart.png")
}

// A real agent knows the line that sends a file, and the picture that it draws arrives.
func TestTheRealAgentsSendPictures(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, nil)
			chart := picture(t)
			town.makeFile("drawn.png", chart)
			town.say(
				`[[tool cmd="mkdir -p out && cp drawn.png out/chart.png"]] [[text "Here it is.\n\n[[file: out/chart.png | Sales]]\n\nDone."]]`)
			if m := town.awaitDone(1); !strings.Contains(m.Text, "Here it is.\n\n📎 chart.png\n\nDone.") {
				t.Errorf("the answer is shown as %q", m.Text)
			}
			m, data := town.awaitFile("photo", "")
			if m.Text != "Sales" || !bytes.Equal(data, chart) {
				t.Errorf("the picture arrives with %q", m.Text)
			}
			told := false
			for _, r := range api.Requests() {
				told = told || strings.Contains(r.System, "[[file: PATH]]")
			}
			if !told {
				t.Error("the agent is not told how to send a file")
			}
		})
	}
}

// The part of a caption that does not fit follows as a message, which ends an album. A long text continues in the
// next message.
func TestALongCaptionGoesOn(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Queue.MergeWindow = "bypass", 10*time.Second // the prompt is two messages
	})
	chart := picture(t)
	town.makeFile("one.png", chart)
	town.makeFile("two.png", chart)
	words := func(n int) string { return strings.Repeat("🎉 word ", n) }
	town.say(`[[start]] [[text "There:\n\n[[file: one.png | %s]]\n[[file: two.png | %s]]\n"]]`, words(700), words(100))
	town.awaitMessage(func(m telegram.Message) bool { return m.Media != nil && strings.Count(m.Text, "word") == 100 })
	count := 0
	for _, m := range town.chat.View().FromBot() {
		if !strings.Contains(m.Text, "There:") {
			count += strings.Count(m.Text, "word")
		}
	}
	if count != 800 {
		t.Errorf("%d words of 800 arrived", count)
	}
}

// A message ends at Telegram's limit of entities or of long addresses, so no link of an answer is lost.
func TestAnAnswerWithManyLinks(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Queue.MergeWindow = "bypass", 10*time.Second // the prompt is four messages
	})
	answer := ""
	for i := range 120 {
		answer += fmt.Sprintf("**[n%d](https://a.example/%d?%s)** ", i, i, strings.Repeat("q", 100))
	}
	town.say(`[[start]] [[text "%s end"]]`, answer)
	town.await(" end")
	town.awaitDone(1)
	links := map[string]bool{}
	for _, m := range town.chat.View().FromBot() {
		for _, e := range m.Entities {
			if e.Type == "text_link" {
				links[e.URL] = true
			}
		}
	}
	if len(links) != 120 {
		t.Errorf("%d links of 120 arrived", len(links))
	}
}

// A local Bot API server returns the paths of its files and does not serve them. ductor reads them in
// telegram.api_files, including files above Telegram's limit.
func TestFilesOfALocalBotAPIServer(t *testing.T) {
	kept := t.TempDir()
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode, c.Telegram.APIFiles = "bypass", kept })
	town.srv.KeepLocally(kept)
	user := town.chat.Person()
	photo := []byte("\xff\xd8\xff\xe0 a photo")
	user.SendPhoto(town.chat, photo, telegram.WithCaption(`[[start]] [[text "seen"]]`))
	town.await("seen")
	large := bytes.Repeat([]byte("0"), telegram.MaxDownload+1)
	user.SendDocument(town.chat, telegram.File{Name: "dump.bin", Data: large},
		telegram.WithCaption(`[[start]] [[text "kept"]]`))
	town.await("kept")
	found, err := filepath.Glob(filepath.Join(town.cfg.Storage.Dir, "uploads", "*", "*"))
	if err != nil || len(found) != 2 {
		t.Fatalf("kept are %q, %v", found, err)
	}
	sizes := 0
	for _, at := range found {
		if info, err := os.Stat(at); err == nil {
			sizes += int(info.Size())
		}
	}
	if want := len(large) + len(photo); sizes != want {
		t.Errorf("%d bytes are kept of %d", sizes, want)
	}
}

// In a worktree that ductor made, users and agents reach the files of the worktree, and no other hidden file.
func TestFilesInAWorktree(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode = "bypass"
		c.Projects.DefaultDir = filepath.Join(c.Projects.Roots[0], "app", ".worktrees", "fix")
		if err := os.MkdirAll(c.Projects.DefaultDir, 0o700); err != nil {
			t.Fatal(err)
		}
	})
	town.makeFile("out/report.txt", []byte("42"))
	town.makeFile("notes.txt", []byte("the notes"))
	town.makeFile("sent.txt", []byte("sent"))
	town.makeFile(".git", []byte("gitdir: /x"))
	town.makeFile("../other/far.txt", []byte("x"))
	town.makeFile("../../.git/config", []byte("x"))
	town.makeFile("../../readme.txt", []byte("read me"))
	const hidden = "I don't touch hidden files and folders"

	town.say("/get out/report.txt")
	town.awaitFile("document", "report.txt")
	town.say("/get ../../readme.txt")
	town.awaitFile("document", "readme.txt")
	for _, path := range []string{".git", "../other/far.txt", "../../.git/config"} {
		town.awaitAfter(town.say("/get %s", path), path+": "+hidden)
	}
	file := town.chat.Person().SendDocument(town.chat, csvFile("data.csv"), telegram.WithCaption("/put"))
	town.awaitAfter(file, "Saved as "+filepath.Join(town.cfg.Projects.DefaultDir, "data.csv"))
	town.awaitAfter(town.chat.Person().Send(town.chat, "/put .git/x", telegram.ReplyTo(file.ID)), hidden)
	m := town.awaitKeyboard(town.say("/files"), "📄 data.csv")
	town.pressOn(m, "⬆ Up")
	town.awaitKeyboard(m, "📄 readme.txt")
	town.awaitAfter(town.say("/files .git"), hidden)

	c, release := town.holdTurn()
	if out := c.call("send_file", map[string]any{"path": "sent.txt"}); !strings.Contains(out, "on its way") {
		t.Errorf("send_file answers %q", out)
	}
	town.awaitFile("document", "sent.txt")
	consult := func(path string) string {
		return c.call("consult_with", map[string]any{"model": "claude", "question": `[[start]] [[text "it is read"]]`,
			"context": []string{path}})
	}
	if out := consult("notes.txt"); !strings.Contains(out, "it is read") {
		t.Errorf("a context file: %q", out)
	}
	for _, path := range []string{".git", "../../.git/config"} {
		for tool, out := range map[string]string{
			"consult_with": consult(path), "send_file": c.call("send_file", map[string]any{"path": path}),
		} {
			if !strings.Contains(out, hidden) {
				t.Errorf("%s of %s answers %q", tool, path, out)
			}
		}
	}
	release()
	town.awaitDone(1)
	town.say(`[[start]] [[text "Here:\n\n[[file: notes.txt]]\n\n[[file: .git]]\n\nDone."]]`)
	town.awaitFile("document", "notes.txt")
	town.await("📎 .git: " + hidden)
}
