package turn

import (
	"testing"

	"ductor/cli"
)

func TestWhoEndedAProgram(t *testing.T) {
	for exit, outside := range map[cli.ExitStatus]bool{
		{Code: 143}: true, {Code: -15, Signal: true}: true, {Code: 0, By: cli.EndedByTerminated}: true, {Code: cli.CodeUnknown, By: cli.EndedUnseen}: true,
		{Code: 1}: false, {Code: -9, Signal: true}: false, {Code: 143, By: cli.EndedByStop}: false, {Code: 143, By: cli.EndedByAge}: false,
	} {
		if fromOutside(exit) != outside {
			t.Errorf("%+v was ended from outside: %v", exit, !outside)
		}
	}
}
