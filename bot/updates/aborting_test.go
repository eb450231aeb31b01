package updates

import (
	"encoding/json"
	"testing"

	"ductor/bot/bottest"
	"ductor/orchestrator"
)

func TestStoredAbortsAreFound(t *testing.T) {
	const member, viewer, stranger, group = 8, 9, 66, -5
	allow := Allow{
		Users: orchestrator.Roster{listed: orchestrator.RoleUser, viewer: orchestrator.RoleViewer},
		Policy: always(Policy{
			AllowedGroups: []int64{group}, GroupMembers: AllMembers, AbortWords: []string{"stop"},
		}),
	}
	abort := CommandSpec{Name: "abort", Aliases: []string{"halt"}, Right: orchestrator.EndOwn}
	type fields map[string]any
	say := func(user, chat int64, text string, more fields) fields {
		kind := "private"
		if chat < 0 {
			kind = "supergroup"
		}
		m := fields{"from": fields{"id": user}, "chat": fields{"id": chat, "type": kind}, "text": text}
		for name, value := range more {
			m[name] = value
		}
		return m
	}
	private, forwarded := fields{"id": listed, "type": "private"}, fields{"forward_origin": fields{"type": "user"}}
	pressed := fields{"from": fields{"id": listed}, "message": say(listed, listed, "/abort", nil)}
	for name, c := range map[string]struct {
		update fields
		found  bool
	}{
		"command":                 {fields{"message": say(listed, listed, "/abort", nil)}, true},
		"alias":                   {fields{"message": say(listed, listed, "/Halt now", nil)}, true},
		"word":                    {fields{"message": say(listed, listed, "Stop!", nil)}, true},
		"edit":                    {fields{"edited_message": say(listed, listed, "stop", nil)}, true},
		"button of Telegram":      {fields{"stopped_message_generation": fields{"chat": private}}, true},
		"command of a member":     {fields{"message": say(member, group, "/abort@a_bot", nil)}, true},
		"command behind a name":   {fields{"message": say(listed, group, "@a_bot /abort", nil)}, true},
		"prompt":                  {fields{"message": say(listed, listed, "stop the server", nil)}, false},
		"other command":           {fields{"message": say(listed, listed, "/new", nil)}, false},
		"word in a group":         {fields{"message": say(listed, group, "stop", nil)}, false},
		"forwarded":               {fields{"message": say(listed, listed, "/abort", forwarded)}, false},
		"command of a viewer":     {fields{"message": say(viewer, viewer, "/abort", nil)}, false},
		"command of a stranger":   {fields{"message": say(stranger, stranger, "/abort", nil)}, false},
		"button below an /abort":  {fields{"callback_query": pressed}, false},
		"update without a sender": {fields{"message": fields{"text": "/abort"}}, false},
	} {
		raw, err := json.Marshal(c.update)
		if err != nil {
			t.Fatal(err)
		}
		journal := bottest.NewInbox()
		updates := []orchestrator.Update{{ID: 1, Raw: []byte("{")}, {ID: 2, Raw: raw}, {ID: 3, Raw: raw}}
		if _, err := journal.AppendUpdates(t.Context(), updates); err != nil {
			t.Fatal(err)
		}
		found, err := FindAborts(t.Context(), journal, allow, abort)
		if err != nil || (len(found) == 1) != c.found || len(found) > 1 {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
		journal.Handle([]int64{2, 3})
		if found, err := FindAborts(t.Context(), journal, allow, abort); err != nil || len(found) > 0 {
			t.Errorf("%s: found %v after it was handled, %v", name, found, err)
		}
	}
}
