use tlog_tiles::*;
const LOG: &str = "exported/log";
fn file(path: &str) -> Vec<u8> {
    std::fs::read(format!("{LOG}/{path}")).unwrap_or_else(|e| panic!("{path}: {e}"))
}
struct Dir;
impl TileReader for Dir {
    fn height(&self) -> u8 { 8 }
    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, Error> {
        Ok(tiles.iter().map(|t| {
            let p = t.path().replacen("tile/8/", "tile/", 1);
            file(&p)
        }).collect())
    }
    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}
fn head(path: &str) -> Checkpoint {
    let note = std::fs::read(path).unwrap();
    let text = String::from_utf8(note).unwrap();
    let body = &text[..text.rfind("\n\n").unwrap() + 1];
    Checkpoint::from_bytes(body.as_bytes()).expect("checkpoint")
}
/// The entries of a bundle, at the path that the crate gives its own tiles of data.
fn bundle(n: u64, size: u64) -> Vec<Vec<u8>> {
    let width = std::cmp::min(256, size - n * 256) as u32;
    let path = Tile::new(8, 0, n, width, true).path().replacen("tile/8/data/", "tile/entries/", 1);
    let data = file(&path);
    let (mut rest, mut entries) = (&data[..], vec![]);
    while !rest.is_empty() {
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        entries.push(rest[2..2 + length].to_vec());
        rest = &rest[2 + length..];
    }
    assert_eq!(entries.len(), width as usize, "{path}");
    entries
}
fn main() {
    let new = head(&format!("{LOG}/checkpoint"));
    let old = head("old.txt");
    println!("rust: {} {} and {}", new.origin(), old.size(), new.size());
    let r = TileHashReader::new(new.size(), *new.hash(), &Dir);
    for i in [0u64, 255, 256, 65535, 65536, 65537, 69999] {
        let p = prove_record(new.size(), i, &r).expect("prove");
        check_record(&p, new.size(), *new.hash(), i, record_hash(format!("entry {i}").as_bytes())).expect("check");
    }
    assert!(tree_hash(new.size(), &r).expect("root") == *new.hash());
    for n in 0..new.size().div_ceil(256) {
        let entries = bundle(n, new.size());
        let at = |i: usize| n * 256 + i as u64;
        let ids: Vec<u64> = (0..entries.len()).map(|i| stored_hash_index(0, at(i))).collect();
        for (i, (entry, hash)) in entries.iter().zip(r.read_hashes(&ids).expect("hashes")).enumerate() {
            assert!(*entry == format!("entry {}", at(i)).as_bytes() && record_hash(entry) == hash, "entry {}", at(i));
        }
    }
    println!("rust: {} entries are those that were written, and their hashes make the signed root", new.size());
    let p = prove_tree(new.size(), old.size(), &r).expect("tree");
    check_tree(&p, new.size(), *new.hash(), old.size(), *old.hash()).expect("consistent");
    let ours: Vec<Hash> = std::fs::read_to_string("consistency.txt").unwrap().lines().map(|l| Hash::parse_hash(l).unwrap()).collect();
    check_tree(&ours, new.size(), *new.hash(), old.size(), *old.hash()).expect("our proof");
    println!("rust: 7 records and the consistency proven from our tiles; our own proof holds");
}
