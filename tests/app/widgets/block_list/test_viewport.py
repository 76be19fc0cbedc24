"""The view over cells of known and unknown heights, against a flat list of all lines."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon.widgets.block_list.viewport import LineRef, Measured, Viewport

cells = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 1), st.integers(1, 7)), st.just((0, 0)), st.just((0, 30))
    ).map(lambda pair: Measured(*pair)),
    min_size=1,
    max_size=30,
).filter(lambda cells: any(cell.rows for cell in cells))


class World:
    """Cells whose heights the view only guesses until it measures them."""

    def __init__(self, cells: list[Measured], height: int) -> None:
        self.cells = {f"c{number}": cell for number, cell in enumerate(cells)}
        self.heights = HeightIndex((block, 3) for block in self.cells)
        self.measured: list[str] = []
        self.view = Viewport(self.heights, self._measure)
        self.view.height = height
        self.view.layout()

    def _measure(self, block: str) -> Measured:
        self.measured.append(block)
        return self.cells[block]

    def flat(self) -> list[LineRef]:
        return [
            LineRef(block, line)
            for block in self.heights
            for line in range(-self.cells[block].head, self.cells[block].body)
        ]

    def top(self) -> int:
        """Index of the first row in the flat list; the view is a slice of it."""
        flat, places = self.flat(), self.view.places
        first = places[0]
        assert first is not None
        top = flat.index(first)
        shown: list[LineRef | None] = list(flat[top : top + self.view.height])
        assert places == shown + [None] * (self.view.height - len(shown))
        return top


@settings(deadline=None)
@given(cells=cells, height=st.integers(1, 20), moves=st.lists(st.integers(-25, 25), max_size=12))
def test_scrolling_moves_by_exactly_so_many_rows(
    cells: list[Measured], height: int, moves: list[int]
) -> None:
    world = World(cells, height)
    lines = len(world.flat())
    last = max(0, lines - height)
    assert world.top() == last
    expected = last
    for move in moves:
        expected = max(0, min(expected + move, last))
        world.view.scroll(move)
        world.view.layout()
        assert world.top() == expected
        assert world.view.is_at_tail == (expected == last)


@settings(deadline=None)
@given(
    cells=cells,
    height=st.integers(2, 20),
    up=st.integers(1, 60),
    changes=st.lists(
        st.tuples(
            st.sampled_from(["grow", "insert", "hide"]), st.integers(0, 99), st.integers(1, 9)
        ),
        max_size=8,
    ),
)
def test_changes_above_what_one_reads_do_not_move_it(
    cells: list[Measured], height: int, up: int, changes: list[tuple[str, int, int]]
) -> None:
    world = World(cells, height)
    world.view.scroll(-up)
    world.view.layout()
    if world.view.following or world.view.places[-1] is None:
        return
    anchor = world.view.anchor
    assert anchor is not None
    before = list(world.view.places)
    at = world.heights.index(anchor.block)
    for number, (what, where, size) in enumerate(changes):
        above = list(world.heights)[: at + (what == "insert")]
        if not above:
            continue
        block = above[where % len(above)]
        if what == "insert":
            name = f"new{number}"
            world.cells[name] = Measured(1, size)
            world.heights.insert(name, 3, after=world.heights.beside(block, -1))
            at += 1
        elif what == "grow":
            world.cells[block] = Measured(world.cells[block].head, world.cells[block].body + size)
        else:
            world.cells[block] = Measured(0, 0)
        world.view.layout()
        assert world.view.places == before


@settings(deadline=None)
@given(
    cells=cells,
    height=st.integers(1, 20),
    taller=st.integers(1, 40),
    up=st.integers(0, 60),
    which=st.integers(0, 99),
    row=st.integers(-5, 25),
    cut=st.integers(0, 7),
)
def test_no_row_is_blank_that_text_outside_could_fill(
    cells: list[Measured], height: int, taller: int, up: int, which: int, row: int, cut: int
) -> None:
    world = World(cells, height)
    world.view.scroll(-up)
    block = world.flat()[which % len(world.flat())].block
    world.view.anchor_on(block, 0, row)
    world.cells[block] = Measured(world.cells[block].head, max(1, world.cells[block].body - cut))
    world.view.height = taller
    world.view.layout()
    assert world.view.places[-1] is not None or world.top() == 0


@settings(deadline=None)
@given(
    cells=cells,
    height=st.integers(1, 20),
    up=st.integers(0, 60),
    which=st.integers(0, 99),
)
def test_revealed_cell_is_seen_whole_or_from_its_start(
    cells: list[Measured], height: int, up: int, which: int
) -> None:
    world = World(cells, height)
    world.view.scroll(-up)
    shown = [block for block, cell in world.cells.items() if cell.rows]
    block = shown[which % len(shown)]
    cell = world.cells[block]
    world.view.reveal(block, -cell.head, cell.body - 1)
    rows = world.view.seen_rows(block)
    if cell.rows <= height:
        assert len(rows) == cell.rows
    else:
        assert world.view.row_of(block, -cell.head) == 0 or len(rows) == height


def test_frame_measures_only_the_cells_it_shows() -> None:
    for count in (100, 10_000):
        world = World([Measured(0, 4)] * count, 20)
        for move in (-3, -3, 3, -20, 5):
            world.measured.clear()
            world.view.scroll(move)
            world.view.layout()
            assert len(set(world.measured)) <= 20


def test_view_without_rows_can_be_led_home() -> None:
    world = World([Measured(1, 7)], height=0)
    world.view.scroll_home()
    assert world.view.places == []
