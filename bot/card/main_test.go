package card

import (
	"testing"

	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) {
	testprogram.Checks(25)
	testprogram.Main(m)
}
