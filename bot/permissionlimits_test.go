package bot

import (
	"strings"
	"testing"
	"testing/synctest"

	"ductor/cli"
)

// What the agent of a conversation does not do of a mode is said where the mode is chosen, and again when it is set.
func TestThePermissionMenuSaysWhatTheAgentCannot(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		const why = "it has no plan mode: it may read, and change nothing"
		r.desk.cannot = map[cli.PermissionMode]string{cli.Plan: why}
		k := r.openPermissions(t)
		if text := r.journal.lastLetter(t).Text; strings.Count(text, why) != 1 || !strings.Contains(text, meaningOf(cli.Plan)+"\n  Here: "+why) {
			t.Errorf("the menu says\n%s", text)
		}
		r.send(r.press(k[0][0].Data, 9))
		synctest.Wait()
		if e := r.voice.edits[len(r.voice.edits)-1]; !strings.Contains(e.Text, why) {
			t.Errorf("the menu became %+v", e)
		}
		r.send(r.text("/permissions ask"))
		synctest.Wait()
		if text := r.journal.lastLetter(t).Text; strings.Contains(text, why) {
			t.Errorf("of another mode it says %s", text)
		}
	})
}
