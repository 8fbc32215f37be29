//! The choice of moves that even out regions over servers.

use std::collections::HashMap;

use basalt_engine::schema::TableName;

/// The servers on which these regions should be, given by table and present server, in the same order.
pub(super) fn balance(regions: &[(TableName, u16)], servers: usize) -> Vec<u16> {
    let mut on: Vec<u16> = regions.iter().map(|(_, server)| *server).collect();
    let mut all = vec![0i64; servers];
    let mut of_table: HashMap<&TableName, (Vec<i64>, Vec<usize>)> = HashMap::new();
    for (index, (table, server)) in regions.iter().enumerate() {
        let (loads, members) = of_table
            .entry(table)
            .or_insert_with(|| (vec![0; servers], Vec::new()));
        loads[usize::from(*server)] += 1;
        all[usize::from(*server)] += 1;
        members.push(index);
    }
    // By table: from its fullest server to its emptiest, among equals to the one with fewer in
    // total.
    let mut tables: Vec<_> = of_table.into_iter().collect();
    tables.sort_by_key(|(_, (_, members))| members[0]);
    for (_, (loads, members)) in &mut tables {
        loop {
            let Some((most, least)) = ends(servers, |server| (loads[server], all[server])) else {
                return on;
            };
            if loads[most] - loads[least] <= 1 {
                break;
            }
            let moved = members.iter().find(|index| usize::from(on[**index]) == most);
            let Some(index) = moved else { break };
            on[*index] = least as u16;
            for counts in [&mut *loads, &mut all] {
                counts[most] -= 1;
                counts[least] += 1;
            }
        }
    }
    // In total: while one server has two more than another, some table has one more on it, which
    // can move to the other.
    while let Some((most, least)) = ends(servers, |server| (all[server], 0)) {
        let uneven = |(_, (loads, _)): &&mut (&TableName, (Vec<i64>, Vec<usize>))| loads[most] > loads[least];
        let Some((_, (loads, members))) = tables.iter_mut().find(uneven) else {
            break;
        };
        let moved = members.iter().find(|index| usize::from(on[**index]) == most);
        let (true, Some(index)) = (all[most] - all[least] > 1, moved) else {
            break;
        };
        on[*index] = least as u16;
        for counts in [&mut *loads, &mut all] {
            counts[most] -= 1;
            counts[least] += 1;
        }
    }
    on
}

/// The servers with the greatest and the least load; `None` without servers.
fn ends(servers: usize, load: impl Fn(usize) -> (i64, i64)) -> Option<(usize, usize)> {
    let most = (0..servers).max_by_key(|server| load(*server))?;
    let least = (0..servers).min_by_key(|server| load(*server))?;
    Some((most, least))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(regions: &[(TableName, u16)], on: &[u16], servers: usize, table: Option<&str>) -> Vec<usize> {
        (0..servers)
            .map(|server| {
                let here = |(index, (name, _)): &(usize, &(TableName, u16))| {
                    usize::from(on[*index]) == server && table.is_none_or(|table| name.to_string() == table)
                };
                regions.iter().enumerate().filter(here).count()
            })
            .collect()
    }

    /// Goal: after a balance every table is spread as evenly as its number of regions allows, and so are all
    /// together.
    #[test]
    fn tables_and_the_whole_become_even() {
        let table = |name: &str| TableName::parse(name.as_bytes()).unwrap();
        let mut regions: Vec<_> = (0..9).map(|_| (table("big"), 0)).collect();
        regions.extend((0..7).map(|number| (table(&format!("small{number}")), 0)));
        let on = balance(&regions, 4);
        assert_eq!(loads(&regions, &on, 4, None), [4, 4, 4, 4]);
        let mut big = loads(&regions, &on, 4, Some("big"));
        big.sort_unstable();
        assert_eq!(big, [2, 2, 2, 3]);
    }

    /// Goal: regions that are evenly spread stay where they are.
    #[test]
    fn an_even_spread_is_left_alone() {
        let table = TableName::parse(b"t").unwrap();
        let regions: Vec<_> = (0..10).map(|number| (table.clone(), number % 4)).collect();
        let before: Vec<_> = regions.iter().map(|(_, server)| *server).collect();
        assert_eq!(balance(&regions, 4), before);
        assert!(balance(&[], 4).is_empty());
        assert_eq!(balance(&regions[..1], 1), [0]);
    }
}
