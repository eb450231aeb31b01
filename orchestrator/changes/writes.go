package changes

import (
	"maps"
	"slices"
	"strings"

	"ductor/cli"
)

// writes records whether and when a turn may have written files.
type writes struct {
	wrote bool
	tools map[cli.ToolID]bool     // running tools that may write; the value is false while a tool waits for permission
	asks  map[cli.ApprovalID]bool // permission requests; true if the tool may write
	// early contains the tools that may have written before the snapshot was complete, because they did not ask for
	// permission. The ID unknownTool means that some tool may have done so, but ductor does not know which.
	early        map[cli.ToolID]bool
	snapshotDone bool // the snapshot is complete or has failed
}

// unknownTool is the ID that represents any unknown tool.
const unknownTool cli.ToolID = "\x00"

func newWrites() writes {
	return writes{
		tools: map[cli.ToolID]bool{}, asks: map[cli.ApprovalID]bool{}, early: map[cli.ToolID]bool{},
	}
}

func (w *writes) possible() bool {
	return w.wrote || slices.Contains(slices.Collect(maps.Values(w.tools)), true)
}

// tooEarly records that an unknown tool may have written before the snapshot was complete.
func (w *writes) tooEarly() {
	if !w.snapshotDone {
		w.early[unknownTool] = true
	}
}

func (w *writes) observe(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.ToolStarted:
		if onlyReads(ev.Name) {
			return
		}
		if w.tools[ev.ID] = true; !w.snapshotDone {
			w.early[ev.ID] = true
		}
	case cli.ToolChanged:
		if _, known := w.tools[ev.ID]; !known { // until now, the tool seemed only to read
			w.observe(ev.ToolStarted)
		}
	case cli.ToolEnded:
		runs, may := w.tools[ev.ID]
		delete(w.tools, ev.ID)
		switch {
		case ev.Err == cli.ToolDenied:
			delete(w.early, ev.ID)
		case may && (runs || ev.Err != cli.ToolCutShort):
			w.wrote = true
		}
	case cli.FileChanged:
		w.wrote = true
		w.tooEarly()
	case cli.ApprovalAsked: // the tool has not written yet, because it waits for permission
		w.asks[ev.ID] = !onlyReads(ev.Tool)
		started := ev.Started
		if started == "" && len(w.tools) == 1 {
			for started = range w.tools {
			}
		}
		if _, may := w.tools[started]; may {
			w.tools[started] = false
		}
		delete(w.early, started)
	}
}

// onlyReads reports whether a tool surely does not change files.
func onlyReads(tool string) bool {
	if own := cli.OwnTool(tool); own != "" {
		return own != "work_with" // ductor's other tools do not let an agent write
	}
	switch strings.ToLower(tool) {
	case "read", "grep", "glob", "ls", "view", "search", "websearch", "webfetch", "todowrite", "read_file",
		"read_many_files", "list_directory",
		"search_file_content", "google_web_search", "web_fetch", "web_search", "fetch", "think", "report_intent",
		"askuserquestion", "ask_user", "exitplanmode", "exit_plan_mode":
		return true
	}
	return false
}
