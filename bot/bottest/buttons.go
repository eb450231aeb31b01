package bottest

import (
	"cmp"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// Buttons is a fake of card.Buttons. Tests can parse the data of its buttons.
type Buttons struct{}

// Offer returns one button per offered action.
func (Buttons) Offer(t cli.TurnID, r orchestrator.Recovery) tgapi.Keyboard {
	var row []tgapi.Button
	for _, what := range r.Offer {
		text := map[orchestrator.Action]string{orchestrator.ActionAgain: "Run again",
			orchestrator.ActionFresh: "Start fresh"}[what]
		row = append(row, tgapi.Button{Text: cmp.Or(text, string(what)), Data: string(what) + ":" + string(t)})
	}
	if row == nil {
		return nil
	}
	return tgapi.Keyboard{row}
}

// EndRetries returns the button that cancels the next retry of a turn.
func (Buttons) EndRetries(t cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: "Cancel", Data: "drop:" + string(t)}
}
func (Buttons) Stop(t cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: stop, Data: "stop:" + string(t)}
}

// Tables returns no buttons.
func (Buttons) Tables(cli.TurnID, string) []tgapi.Button { return nil }

// Changes returns the button "Undo" if the turn changed files and the changes can be undone.
func (Buttons) Changes(t cli.TurnID, c orchestrator.Changed) []tgapi.Button {
	if c.Files == 0 || c.NoUndo != "" {
		return nil
	}
	return []tgapi.Button{{Text: "Undo", Data: "undo:" + string(t)}}
}

func (Buttons) Steps(t cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: "Steps", Data: "steps:" + string(t)}
}
func (Buttons) ShowAgain(t cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: "Show again", Data: "show:" + string(t)}
}
