package kernel

// TurnColumns is how many columns are turned at a time: eight words are one
// cache line.
const TurnColumns = 8

// Turn writes eight columns of rows of width words each, of which the first
// stands at the start of src, to dst: row r of column c becomes dst[c*height+r].
func Turn(dst []uint64, height int, src []uint64, width, rows int) {
	if rows < 1 || height < rows || width < TurnColumns || len(dst) < (TurnColumns-1)*height+rows ||
		len(src) < (rows-1)*width+TurnColumns {
		panic("kernel: columns outside of their words")
	}
	turnGo(dst, height, src, width, rows, turn(dst, height, src, width, rows))
}

// turnGo turns the rows from number at on.
func turnGo(dst []uint64, height int, src []uint64, width, rows, at int) {
	for r := at; r < rows; r++ {
		row := (*[TurnColumns]uint64)(src[r*width:])
		for c, w := range row {
			dst[c*height+r] = w
		}
	}
}
